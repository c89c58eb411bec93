"""Frozen records that cross layers. They hold data and cheap properties, never I/O."""
