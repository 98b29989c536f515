"""Values: frozen and pure, the ground of all rooms."""
