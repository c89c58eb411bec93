"""A starter registry for a graph that was never prepared: from its tools' schemas and its threads' results."""
