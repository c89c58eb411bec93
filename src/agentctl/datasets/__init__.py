"""Threads as dataset examples."""
