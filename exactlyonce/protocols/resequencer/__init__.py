"""Read models that take messages in the order of their numbers."""
