"""The tour: a project found or laid out, its production store seeded by real runs, its incidents walked."""
