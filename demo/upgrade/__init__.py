"""An upgrade under load: hosts of an earlier version are replaced one by one, rolled back, and replaced once more."""
