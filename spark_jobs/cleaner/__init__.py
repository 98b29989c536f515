"""The clean-up: a cleaner, its scan of the account, the verdicts, the removal, and the summary."""
