"""The doctor: examines an application's files, functions and accounts, and changes nothing."""
