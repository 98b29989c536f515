"""Suites for authors of adapters: a class to inherit from for each port."""
