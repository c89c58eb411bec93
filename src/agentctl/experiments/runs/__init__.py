"""Running graphs on copies: jobs, events, streams, threads, answers to what they ask."""
