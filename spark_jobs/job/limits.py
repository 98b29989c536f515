"""Default limits of ages; `configuration.Job` explains each."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

HORIZON: Final = timedelta(hours=1)
OWED_AFTER: Final = timedelta(minutes=10)
LOST_AFTER: Final = timedelta(hours=1)
GAP_AFTER: Final = timedelta(minutes=10)
GARBAGE_AFTER: Final = timedelta(days=7)
GRACE: Final = timedelta(minutes=5)
