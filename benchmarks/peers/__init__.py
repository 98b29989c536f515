"""The same work by this library and by what else a user would pick: `python -m benchmarks.peers`."""
