"""The audit: an auditor, its reader of the account, the judgement, the checkpoint, and the watch."""
