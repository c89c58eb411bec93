"""`run` and `resume`: a workflow on a thread of its own, not a copy."""
