"""Azure clients of one process: opened on first use, verified once, closed together."""
