"""What people and jobs around the workflow use: relay and consumer of events, reminders, reconciliation, counters."""
