"""What the doctor finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["wrong", "unknown", "advice", "cost", "fine"]
"""`wrong`: messages are lost, wait for ever or cannot be processed. `unknown`: it could not be looked at. `advice`: it works,
and would work better. `cost`: what is paid for at rest. `fine`: it was looked at."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    Attributes:
        level: how bad it is.
        subject: what was looked at, such as `container 'games'`.
        text: what was found, and what to change.
    """

    level: Level
    subject: str
    text: str
