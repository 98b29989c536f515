"""Spark jobs: the audit that proves consistency on the data at rest, and the clean-up by time."""
