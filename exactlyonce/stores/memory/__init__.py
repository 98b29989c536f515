"""A store in memory, which behaves as badly as it is asked to."""
