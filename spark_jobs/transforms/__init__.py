"""What the jobs compute: frames in, frames out. Nothing here has a session, reads, or writes."""
