"""Benchmarks: agentctl beside the stock API, in one run."""
