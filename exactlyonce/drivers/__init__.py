"""Performing what strategies ask for: async for Functions, blocking for Spark and scripts."""
