"""What answers a tool call when no tool may run for real."""
