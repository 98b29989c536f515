"""What is written by hand about each step: a title, when it is taken, and why. Everything else on the pages is found.

Keys are those of `places`, or their ends: of two that fit, the longer one counts. A test sees to it that each step has a
sentence and each sentence a step.
"""

from __future__ import annotations

from typing import Final

from devtools.modelcheck.specification.words_apart import APART
from devtools.modelcheck.specification.words_beside import BESIDE
from devtools.modelcheck.specification.words_ordered import ORDERED

STEPS: Final = {**APART, **BESIDE, **ORDERED}


def words_of(key: str) -> str:
    """Which key of `STEPS` a step's words have: the longest that its own ends with."""
    return max((known for known in STEPS if f"/{key}".endswith(f"/{known}")), key=len, default=f"no words for {key}")
