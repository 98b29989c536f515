"""Cosmos DB as jobs see it: reading, deleting, the account, and the application it belongs to."""
