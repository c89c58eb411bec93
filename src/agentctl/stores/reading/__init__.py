"""Rows to histories, states and conversations, without the graph."""
