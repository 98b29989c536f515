"""The scenarios that are explored: small ones by the tests, large ones by `make model`."""
