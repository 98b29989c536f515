"""Streams of messages that never end, in finitely many states: what nobody can notice any more is forgotten."""
