"""Deliveries of queues: taken, processed, and settled where a queue gave them up."""
