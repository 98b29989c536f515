"""Spark: its session, file systems, frames and failures."""
