"""What a store costs, what is wrong with it, and what can go."""
