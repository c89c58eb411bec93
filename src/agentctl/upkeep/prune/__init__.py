"""Taking old checkpoints and threads away: what goes, what must stay for the rest to work, and doing it in batches."""
