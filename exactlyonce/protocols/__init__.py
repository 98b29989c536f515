"""The protocols. One file is one protocol, read top to bottom; pure generators of effects."""
