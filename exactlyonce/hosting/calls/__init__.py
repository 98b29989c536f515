"""Calls of handlers to services."""
