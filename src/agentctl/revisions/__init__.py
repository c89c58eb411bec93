"""Text to one checkpoint: the grammar of targets, how it resolves, and short ids."""
