"""The configuration of an application: settings, connections, and checks of declarations."""
