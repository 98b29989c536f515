"""Business code's side of the library: message types, entities, the context, and how one message is handled."""
