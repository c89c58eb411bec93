"""Verifying income: statements are fetched, parsed and matched with what the employer pays."""
