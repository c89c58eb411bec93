"""What is personal in stored values, and what it becomes."""
