"""The algorithm as it was published, and where it fails."""
