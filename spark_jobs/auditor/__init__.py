"""The audit: an auditor, its two modes, its looks at the account, the judgement, the checkpoint, and the results."""
