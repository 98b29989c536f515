"""More of the zoo: what can go wrong with the settler of one partition if one line is missing."""

from __future__ import annotations

from dataclasses import replace

from devtools.modelcheck.beside.scenarios import BesideScenario
from devtools.modelcheck.twins import Change, broken_settler
from tests.model.broken_beside import COLOCATED, ONE, STALE, BrokenBeside, scenario
from tests.model.broken_resequencers import FIRST, READ_MODEL, SECOND
from tests.model.broken_streams import STREAM


class BrokenSettler(BrokenBeside):
    """A broken settler, a scenario in which it shows, and the property that falls there."""

    __slots__ = ()

    def scenario_with_twin(self) -> BesideScenario:
        """The scenario with the twin in place of what ships."""
        return replace(self.scenario, name=self.name, settle=broken_settler(self.name, *self.changes))


BROKEN_SETTLERS: tuple[BrokenSettler, ...] = (
    BrokenSettler(
        "a settler that trusts an older view of a read model",
        (Change("    if any(_released_since(view, one) for one in documents):", "    if not documents:"),),
        scenario(READ_MODEL, FIRST, SECOND, crashes=1, stale=1, poisoned=1),
        "nothing_lost",
    ),
    BrokenSettler(
        "a settler that parks without a fence",
        (
            Change(
                "    parked = yield from park(work.entity, came or envelope, reason, work.absent, view)\n    return parked",
                "    begun = yield from Begin()\n"
                "    message = ParkedMessage(work.entity.key, key_of(envelope), reason, begun.at, envelope.to_json())\n"
                "    parked = yield from Park(work.entity, message)\n"
                '    return Settled("parked", view.memory) if parked is not UNKNOWN else Again(view.memory, "")',
            ),
            Change(
                "from exactlyonce.effects import NoAnswer, Step",
                "from exactlyonce.effects import UNKNOWN, Begin, NoAnswer, Park, Step",
            ),
            Change(
                "from exactlyonce.records import Protocol", "from exactlyonce.records import ParkedMessage, Protocol"
            ),
        ),
        scenario(COLOCATED, ONE, unknown=1, poisoned=1),
        "parked_is_unprocessed",
    ),
    BrokenSettler(
        "a settler that looks for the record in a view of any age",
        (Change("LoadBeside(work.entity, ids, view.memory.entity_token)", "LoadBeside(work.entity, ids, None)"),),
        scenario(COLOCATED, ONE, crashes=1, stale=STALE, poisoned=1),
        "parked_is_unprocessed",
    ),
    BrokenSettler(
        "a settler that does not handle a duplicate again",
        (
            Change(
                "        failed = yield from handled_again(work, {key_of(envelope): envelope}, entries, sight)\n",
                "        failed: tuple[()] | Again = ()\n",
            ),
        ),
        scenario(STREAM, ONE, crashes=1, poisoned=1),
        "nothing_lost",
    ),
    BrokenSettler(
        "a settler that does not publish what a record owes",
        (
            Change(
                "        owed = yield from publish_records(work.entity, sight.companions, sight.memory)\n",
                "        owed = None\n",
            ),
        ),
        scenario(COLOCATED, ONE, crashes=1, poisoned=1),
        "nothing_lost",
    ),
)
