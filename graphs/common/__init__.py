"""What the workflows share: scripted models, callers and owners, calls to services, claims on answers, deletion."""
