"""Cosmos DB for jobs: the account, the application that owns the library container, reads, deletes and failures."""
