"""Copies of threads between stores: what to take, how to write it, proof that it is equal."""
