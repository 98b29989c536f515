"""Variants of the protocols of one partition that are as good as what ships, each with the reason."""

from __future__ import annotations

from typing import Final

from exactlyonce.effects.companions import SaveBatch
from tests.model.broken_companions import COLOCATED, ONE, STALE, TWO, BrokenCompanions, scenario, upserted
from tests.model.broken_resequencers import COMMIT as COMMIT_OF_A_READ_MODEL
from tests.model.broken_resequencers import FIRST_TWICE, READ_MODEL, SECOND
from tests.model.broken_streams import GAPS_NOT_NOTICED, ONE_BY_ONE, STREAM, UPSERT
from tests.model.zoo import Broken
from verification.mutants.named import Mutation
from verification.twins.alterations import asks
from verification.twins.modules import around

IN_A_STREAM = scenario(STREAM, TWO, ONE, crashes=1, unknown=1, stale=STALE)
IN_A_READ_MODEL = scenario(READ_MODEL, FIRST_TWICE, SECOND, crashes=1, unknown=1, stale=STALE)

HARMLESS: Final[tuple[tuple[BrokenCompanions, str], ...]] = (
    (
        Broken("an entry created by an upsert, read in a view as new as the state", (UPSERT, ONE_BY_ONE), IN_A_STREAM),
        "Who sees the state together with its entries misses none; its condition does the rest. What ships needs the conflict.",
    ),
    (
        Broken("gaps in a range not noticed", (GAPS_NOT_NOTICED,), IN_A_STREAM),
        "In a view as new as the state no entry is missing. It is for clean-up and for backups that the range is counted.",
    ),
    (
        Broken(
            "what was published is not written down",
            (Mutation("co-located: what was published is not written down"),),
            scenario(COLOCATED, TWO, ONE, crashes=1, unknown=1),
        ),
        "A duplicate publishes it again, under the same id. It costs copies, and a sweeper that never comes to an end.",
    ),
    (
        Broken(
            "documents of numbers written over whatever is there",
            (around(COMMIT_OF_A_READ_MODEL, asks(SaveBatch, upserted)),),
            IN_A_READ_MODEL,
        ),
        "Every batch has the read model's ETag for a condition, and no document of a number changes without it.",
    ),
)
"""Variant and reason."""
