"""All pages that are generated from strategies, in the order of the index."""

from __future__ import annotations

from typing import Final

from devtools.modelcheck.specification.chapters import OUTBOX, RETENTION, RETURNING, SETTLING
from devtools.modelcheck.specification.chapters_beside import COLOCATED, RESEQUENCER, SETTLING_BESIDE, STREAM

CHAPTERS: Final = (OUTBOX, SETTLING, RETURNING, RETENTION, COLOCATED, STREAM, RESEQUENCER, SETTLING_BESIDE)
