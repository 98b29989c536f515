"""Records: what is stored, and how it is read and written as JSON."""
