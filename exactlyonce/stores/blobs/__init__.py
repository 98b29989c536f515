"""Blob stores, for what is too large for a document or a queue."""
