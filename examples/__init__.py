"""Applications to look at and to copy."""
