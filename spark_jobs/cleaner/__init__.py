"""Parts of the clean-up: what may go, how it goes, and what is told of it."""
