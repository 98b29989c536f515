"""The configuration of an application: its settings, its connections, and its host."""
