"""Web research: a deep agent plans, searches in parallel, notes, drafts, is criticised, and asks before publishing."""
