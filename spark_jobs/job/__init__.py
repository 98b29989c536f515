"""The job file, the settings of the account, and the exit codes."""
