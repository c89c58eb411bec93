"""What failing means, how often it happened, and what that says of the cause."""
