"""The outbox protocol: records apart from the entity, in a partition of their own."""
