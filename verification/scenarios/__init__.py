"""The scenarios that are explored: small ones by every test run, large ones by `make model`."""
