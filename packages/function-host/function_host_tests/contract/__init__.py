"""What an app may rely on, whichever engine runs its functions."""
