"""An Agent Server as a store: threads, states and histories over HTTP, through langgraph-sdk."""
