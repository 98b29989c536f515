"""A store in memory with injected faults."""
