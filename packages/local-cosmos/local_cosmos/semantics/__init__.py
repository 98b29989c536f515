"""What the service does, without HTTP: synchronous, single-threaded, clock and chance injected."""
