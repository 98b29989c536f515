"""A shop: orders that are paid within a quarter of an hour, or cancelled. Plain functions; nothing here knows of duplicates."""
