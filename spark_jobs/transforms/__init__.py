"""The computations of the jobs, from frames to frames. No module here has a session, reads, or writes."""
