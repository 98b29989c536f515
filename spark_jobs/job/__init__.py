"""What a job is given, and how it ends."""
