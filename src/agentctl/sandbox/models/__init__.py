"""Recorded model answers: read from a thread's rows, and given again where a call is the one that was recorded."""
