"""Cases and their ledgers of runs and calls, as plain files."""
