"""Stored bytes to inert values and back, without importing or building anything a row names."""
