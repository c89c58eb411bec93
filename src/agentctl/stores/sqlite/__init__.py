"""SQLite files written by langgraph-checkpoint-sqlite or by LangGraph.js: opened without a trace, read by own SQL."""
