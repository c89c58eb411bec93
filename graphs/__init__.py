"""The example workflows: real LangGraph applications that agentctl is tried on."""
