"""The audit: an auditor, its two modes, its reader of the account, the judgement, the checkpoint, and the results."""
