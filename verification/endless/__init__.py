"""Streams of messages that never end, in finitely many states: what no attempt can notice any more is forgotten."""
