"""The outbox protocol: marks of messages in the ledger and in pages; books as proof of sent outputs."""
