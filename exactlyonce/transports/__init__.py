"""Where messages go: the port, and its adapters."""
