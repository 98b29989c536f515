"""Upkeep of entities apart from their messages: sweeping, and the protocols' steps on single entities."""
