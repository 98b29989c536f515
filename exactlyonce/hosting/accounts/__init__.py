"""The accounts of an application: their clients, who owns the container of the library, and what a start verifies."""
