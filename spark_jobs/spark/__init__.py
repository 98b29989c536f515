"""Spark itself: the session, its file systems, its frames, its failures."""
