"""How bad a finding is."""

from __future__ import annotations

from enum import StrEnum


class Severity(StrEnum):
    """What a finding of a rule means for the application, the worst first."""

    WRONG = "data wrong"
    """A state, or what the library knows of its messages, is not what it should be: correct it."""
    LOST = "message lost"
    """A message has not arrived: look for it, or send it again."""
    WATCH = "watch"
    """Something waits for longer than it should: find out why before it is lost."""
    GARBAGE = "garbage"
    """Something is stored that nobody needs: clean-up takes it."""
