"""Measurements, each a command that writes its result with the machine it was measured on."""
