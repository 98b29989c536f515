"""Service Bus triggers: queues, subscriptions and their dead-letter queues; with sessions, and in batches."""
