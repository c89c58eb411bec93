"""The audit log: who looked at a profile, when, at what and why, each line sealed with the one before it."""
