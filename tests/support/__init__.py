"""Code shared between tests: real servers and what they need."""
