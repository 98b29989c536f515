"""Variants of the protocols of one partition that are as good as what ships, each with the reason."""

from __future__ import annotations

from typing import Final

from devtools.modelcheck.beside.scenarios import BesideScenario
from devtools.modelcheck.twins import Change
from tests.model.broken_beside import COLOCATED, DROP, ONE, STALE, TWO, BrokenBeside, scenario
from tests.model.broken_resequencers import CREATED, FIRST_TWICE, READ_MODEL, SECOND
from tests.model.broken_streams import CONTIGUOUS, ONE_BY_ONE, STREAM, UPSERTED
from tests.model.broken_streams import SAVE as SAVE_STREAM


def _variant(name: str, reason: str, base: BesideScenario, *changes: Change) -> tuple[BrokenBeside, str]:
    return BrokenBeside(name, changes, base, ""), reason


IN_A_STREAM = scenario(STREAM, TWO, ONE, crashes=1, unknown=1, stale=STALE)
IN_A_READ_MODEL = scenario(READ_MODEL, FIRST_TWICE, SECOND, crashes=1, unknown=1, stale=STALE)

HARMLESS: Final = (
    _variant(
        "an entry created by an upsert, read in a view as new as the state",
        "Whoever sees the state together with its entries misses none, and the state's condition does the rest. What ships "
        "reads both side by side, and so needs the conflict.",
        IN_A_STREAM,
        Change(SAVE_STREAM, UPSERTED),
        ONE_BY_ONE,
    ),
    _variant(
        "gaps in a range not noticed",
        "In a view as new as the state no entry is missing. It is for clean-up and for backups that the range is counted.",
        IN_A_STREAM,
        CONTIGUOUS,
    ),
    _variant(
        "what was published is not written down",
        "A duplicate publishes it again, under the same id. It costs copies, and a sweeper that never comes to an end.",
        scenario(COLOCATED, TWO, ONE, crashes=1, unknown=1),
        Change(DROP, "            yield from ()"),
    ),
    _variant(
        "documents of numbers written over whatever is there",
        "Every batch has the read model's ETag for a condition, and no document of a number changes without it.",
        IN_A_READ_MODEL,
        Change(CREATED, '            self.replace.append((document, "*"))'),
        Change(
            "            self.replace.append((document, held[1]))", '            self.replace.append((document, "*"))'
        ),
    ),
)
"""Variant and reason."""
