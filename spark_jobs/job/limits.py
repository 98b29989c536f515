"""Default limits of ages; `configuration.Job` explains each."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

HORIZON: Final = timedelta(hours=1)
OWED_AFTER: Final = timedelta(minutes=10)
LOST_AFTER: Final = timedelta(hours=1)
GAP_AFTER: Final = timedelta(minutes=10)
AWAITED_AFTER: Final = timedelta(days=2)
GARBAGE_AFTER: Final = timedelta(days=7)
LEFT_AFTER: Final = timedelta(days=37)
"""A week more than the retention, after which clean-up deletes what was left open."""
GRACE: Final = timedelta(minutes=5)
