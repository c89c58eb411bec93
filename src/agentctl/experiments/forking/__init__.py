"""What a fork changes, and the rows it is made of."""
