"""The configuration of an application: settings, connections, checks of declarations, and functions by the settings."""
