"""More of the zoo: what can go wrong with the clean-up beside an entity if one line is missing, and where it shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from devtools.modelcheck.beside.scenarios import BesideScenario
from devtools.modelcheck.twins import Change, broken_cleaner
from tests.model.broken_beside import COLOCATED, ONE, STALE, TWO, BrokenBeside, scenario
from tests.model.broken_resequencers import FIRST, FIRST_TWICE, READ_MODEL, SECOND, SECOND_TWICE
from tests.model.broken_streams import STREAM


class BrokenCleaner(BrokenBeside):
    """A broken clean-up, a scenario in which it shows, and the property that falls there."""

    __slots__ = ()

    def scenario_with_twin(self) -> BesideScenario:
        """The scenario with the twin in place of what ships."""
        return replace(self.scenario, name=self.name, clean=broken_cleaner(self.name, *self.changes))


OWES = "unfinished=companion.owed is not None"
AS_LISTED = "if (id_of(entity, one), etag) in candidates"
GARBAGE = "    garbage = tuple(key for key, one in old.items() if _may_go(one, ledger, newest))"
EVENTS = "newest // snapshot_every * snapshot_every if event_sourced else newest"
NO_STREAM = "    if snapshot_every is None:\n        return 0\n"
DELETE = "        yield from DeleteBeside(entity, garbage)"

CHANGED_SINCE = Change(AS_LISTED, "if entity")
ALL_NUMBERS = Change("last=following - 1", "last=number")
HELD_TOO = Change("unfinished=held", "unfinished=False")
WHATEVER_THE_ETAG = Change(DELETE, DELETE.replace("garbage", 'tuple((id, "*") for id, _ in garbage)'))

EVENT_SOURCED = replace(scenario(STREAM, ONE, TWO, forgotten=1), sourced=True)
AT_WORK = replace(scenario(READ_MODEL, FIRST, SECOND_TWICE, forgotten=1), workers=3)

BROKEN_CLEANERS: tuple[BrokenCleaner, ...] = (
    BrokenCleaner(
        "clean-up that deletes a record that owes",
        (Change(OWES, "unfinished=False"),),
        scenario(COLOCATED, ONE, crashes=1, forgotten=1),
        "at_most_one_state_change",
    ),
    BrokenCleaner(
        "clean-up that takes the list at its word",
        (Change(GARBAGE, "    garbage = candidates"),),
        scenario(COLOCATED, ONE, crashes=1, forgotten=1),
        "at_most_one_state_change",
    ),
    BrokenCleaner(
        "clean-up that takes a record for old that was written since",
        (CHANGED_SINCE,),
        scenario(COLOCATED, TWO, forgotten=1),
        "at_most_one_state_change",
    ),
    BrokenCleaner(
        "clean-up that cuts an interval of events in the middle",
        (Change(EVENTS, "newest"),),
        EVENT_SOURCED,
        "raised DamagedDocument",
    ),
    BrokenCleaner(
        "clean-up that takes a stream it does not see for one of ways back",
        (Change(NO_STREAM, ""), Change(EVENTS, "newest // (snapshot_every or 1) * (snapshot_every or 1)")),
        replace(scenario(STREAM, ONE, TWO, forgotten=1, stale=STALE), sourced=True),
        "raised DamagedDocument",
    ),
    BrokenCleaner(
        "clean-up that deletes held messages",
        (HELD_TOO, ALL_NUMBERS),
        scenario(READ_MODEL, FIRST, SECOND, forgotten=1),
        "raised DamagedDocument: Read model account/e0 holds number 2 of web",
    ),
    BrokenCleaner(
        "clean-up that takes a message for old that was released just now",
        (CHANGED_SINCE,),
        AT_WORK,
        "raised DamagedDocument",
    ),
)

HARMLESS_CLEANERS: Final = (
    (
        BrokenCleaner(
            "clean-up that deletes whatever the ETag",
            (WHATEVER_THE_ETAG,),
            scenario(COLOCATED, TWO, crashes=1, unknown=1, forgotten=1),
            "",
        ),
        "What is finished with the ETag of the list stays so. The condition is for what comes after the retention.",
    ),
    (
        BrokenCleaner(
            "clean-up that leaves what is held to the numbers",
            (HELD_TOO,),
            scenario(READ_MODEL, FIRST_TWICE, SECOND, crashes=1, forgotten=1),
            "",
        ),
        "What is held is not below the next number.",
    ),
    (
        BrokenCleaner(
            "clean-up that leaves the numbers to what is held",
            (ALL_NUMBERS,),
            scenario(READ_MODEL, FIRST_TWICE, SECOND, crashes=1, forgotten=1),
            "",
        ),
        "What is not held is below the next number.",
    ),
)
"""Variant and reason."""
