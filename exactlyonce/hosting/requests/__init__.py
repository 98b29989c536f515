"""Requests: answered without a queue, over HTTP, or opened, carried out and closed."""
