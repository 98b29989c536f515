"""Tests of the local Cosmos DB; clients in other languages have folders."""
