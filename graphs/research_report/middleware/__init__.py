"""What surrounds the agents' models and tools: intake, budgets, guards on plan, pages and notes, review, wrap-up."""
