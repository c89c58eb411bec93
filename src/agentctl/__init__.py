"""agentctl: operations and time travel for LangGraph agents."""

__version__ = "0.1.0"
