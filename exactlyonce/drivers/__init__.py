"""Drivers: perform the effects of strategies, async for Functions, blocking for Spark and scripts."""
