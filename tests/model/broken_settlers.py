"""More of the zoo: what can go wrong with the settler of one partition if one guard is missing."""

from __future__ import annotations

from tests.model.broken_companions import COLOCATED, ONE, STALE, BrokenCompanions, scenario
from tests.model.broken_resequencers import FIRST, READ_MODEL, SECOND
from tests.model.broken_streams import STREAM
from tests.model.zoo import Broken
from verification.mutants.named import Mutation

BROKEN_SETTLERS: tuple[BrokenCompanions, ...] = (
    Broken(
        "a settler that trusts an older view of a read model",
        (Mutation("a settler that trusts an older view of a read model"),),
        scenario(READ_MODEL, FIRST, SECOND, crashes=1, stale=1, poisoned=1),
        "nothing_lost",
    ),
    Broken(
        "a settler that parks without a fence",
        (Mutation("a settler without a fence"),),
        scenario(COLOCATED, ONE, unknown=1, poisoned=1),
        "parked_is_unprocessed",
    ),
    Broken(
        "a settler that looks for the record in a view of any age",
        (Mutation("a settler that looks for the record in a view of any age"),),
        scenario(COLOCATED, ONE, crashes=1, stale=STALE, poisoned=1),
        "parked_is_unprocessed",
    ),
    Broken(
        "a settler that does not handle a duplicate again",
        (Mutation("a settler that does not handle a duplicate again"),),
        scenario(STREAM, ONE, crashes=1, poisoned=1),
        "nothing_lost",
    ),
    Broken(
        "a settler that does not publish what a record owes",
        (Mutation("a settler that does not publish what a record owes"),),
        scenario(COLOCATED, ONE, crashes=1, poisoned=1),
        "nothing_lost",
    ),
)
