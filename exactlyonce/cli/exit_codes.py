"""Exit codes of commands."""

from __future__ import annotations

from typing import Final

DONE: Final = 0
NOT_DONE: Final = 1
NOT_POSSIBLE: Final = 2
"""Not understood, or not possible with the present settings."""
