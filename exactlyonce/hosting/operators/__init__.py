"""What operators do with entities and parked messages, one by one or in bulk."""
