"""Web research: a deep agent plans, searches in parallel, notes quotes, drafts, is criticised and asks before publishing."""
