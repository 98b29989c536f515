"""Spark: its session, file systems and frames."""
