"""Upkeep of entities apart from their messages: sweeping, and protocols' steps on single entities."""
