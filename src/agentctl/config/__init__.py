"""Profiles, the debug store and the project's graphs, from agentctl.yaml and langgraph.json."""
