"""The nodes: intake, the two agents, quote and approval, payment, tickets and recovery, and what they work with."""
