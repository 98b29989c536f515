"""The protocols: pure generators of effects. Each is a folder or a file over shared steps."""
