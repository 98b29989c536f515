"""Where items are kept: every version that a lagging replica may still serve."""
