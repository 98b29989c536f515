"""The version stream: no outputs are stored; a duplicate is handled again on its first state."""
