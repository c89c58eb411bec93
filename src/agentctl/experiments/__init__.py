"""Replay, fork, diff, checks and verdicts, on copies."""
