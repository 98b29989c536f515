"""Sample business code: a shooting range and its leader board. Plain functions; nothing here knows of stores or duplicates."""
