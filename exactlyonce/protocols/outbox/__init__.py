"""The outbox protocol: marks of messages in the ledger, which leave in pages; books that prove what was sent."""
