"""Effects: every request that a protocol may make of the world, and the replies to it."""
