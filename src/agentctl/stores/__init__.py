"""Where threads live: one protocol over SQLite, Postgres and any BaseCheckpointSaver."""
