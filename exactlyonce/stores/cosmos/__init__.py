"""Azure Cosmos DB."""
