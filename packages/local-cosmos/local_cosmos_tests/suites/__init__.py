"""Tests that others wrote for the service, run against the emulator. They are downloaded, and nothing of them is kept here."""
