"""Operators' actions on entities and parked messages, single or in bulk."""
