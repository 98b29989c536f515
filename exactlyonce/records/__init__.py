"""Records: the shapes of stored documents, and how they are read and written as JSON."""
