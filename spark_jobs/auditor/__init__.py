"""The parts of the audit: looks at the account, the checkpoint between two audits, what is written, what is told meanwhile."""
