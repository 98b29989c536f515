"""The resequencer: read models that handle messages in the order of their numbers."""
