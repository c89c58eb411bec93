"""Postgres databases written by langgraph-checkpoint-postgres: read in `READ ONLY` transactions, by own SQL."""
