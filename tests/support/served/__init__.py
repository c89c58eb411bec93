"""What the Agent Server of the tests is started with."""
