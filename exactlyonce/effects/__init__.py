"""Effects: the requests of strategies and their replies, and the port through which adapters perform effects."""
