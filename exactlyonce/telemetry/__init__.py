"""Telemetry of the drivers: who observes what they do, and what becomes spans and metrics. Strategies know nothing of it."""
