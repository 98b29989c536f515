"""The doctor: looks at an application's files, functions and accounts, and says what to change. It changes nothing."""
