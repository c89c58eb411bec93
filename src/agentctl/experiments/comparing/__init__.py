"""Where two branches part, in messages, calls, state and the words of a workflow."""
