"""Where messages and calls go: ports, and their adapters."""
