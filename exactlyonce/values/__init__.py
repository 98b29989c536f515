"""Values: the ground that everything stands on. Frozen and pure."""
