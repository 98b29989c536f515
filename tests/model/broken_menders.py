"""More of the zoo: what can go wrong with looking after read models and streams if one line is missing, and where it shows."""

from __future__ import annotations

from dataclasses import replace

from devtools.modelcheck.beside.catalogue import LOST, REBUILDING, SKIPPING
from devtools.modelcheck.beside.scenarios import BesideScenario, scenario_of
from devtools.modelcheck.twins import Change, broken_menders
from tests.model.broken_beside import ONE, STALE, BrokenBeside, scenario
from tests.model.broken_resequencers import FIRST, SECOND, THIRD
from tests.model.broken_streams import STREAM


class BrokenMender(BrokenBeside):
    """Something broken that looks after read models or streams, a scenario in which it shows, and the property that falls."""

    __slots__ = ()

    def scenario_with_twin(self) -> BesideScenario:
        """The scenario with the twin in place of what ships."""
        return replace(self.scenario, name=self.name, menders=broken_menders(self.name, *self.changes))


IMPATIENT = scenario_of("read model that skips", (), SKIPPING)
ASKING = scenario_of("read model that asks", (), REBUILDING)
ON_AND_ON = {"nudges": STALE}

SKIP = "SaveTogether(entity, document, view.etag, tuple(skipped))"
UPSERTED = 'SaveTogether(entity, document, "*", (), tuple((one, "*") for one in skipped))'
FOLLOWING = "        following = min(last, first + room - 1) + 1"
GAP = "    return reception.next, reception.held[0][0] - 1"
NEXT = "replace(reception, next=following, gap_since=since)"
ASKED = "Request(reception.source, rebuild.destination, entity.id, first, last)"
IN_RANGE = "            and self.first <= order.number <= self.last"
PUBLISH = "        published = yield from Publish(outputs)"
SENT = "range(first, last_here + 1)"
OLDER = "    if missing is not None and view.ledger.version < versions[1]:"


def published(changed: str) -> Change:
    """Each output that is published again is changed so."""
    return Change(PUBLISH, PUBLISH.replace("outputs", f"tuple({changed} for one in outputs)"))


IMPORTS = Change("from dataclasses import dataclass\n\nfrom", "from dataclasses import dataclass, replace\n\nfrom")


def asked(*, missing: tuple[int, int], **budget: int) -> BesideScenario:
    """A stream of two messages that is asked for what is missing."""
    return replace(scenario(STREAM, ONE, ONE, replays=1, **budget), missing=missing)


BROKEN_MENDERS: tuple[BrokenMender, ...] = (
    BrokenMender(
        "skipped without a condition",
        (Change(SKIP, SKIP.replace("view.etag", '"*"')),),
        scenario(IMPATIENT, SECOND, THIRD, **ON_AND_ON),
        "no_garbage",
    ),
    BrokenMender(
        "a number skipped that has arrived meanwhile",
        (Change(SKIP, UPSERTED),),
        scenario(IMPATIENT, FIRST, SECOND, **ON_AND_ON),
        "serial_execution",
    ),
    BrokenMender(
        "a held message skipped with the gap before it",
        (Change(FOLLOWING, f"{FOLLOWING} + 1"), Change(SKIP, UPSERTED.replace('"*", (),', "view.etag, (),"))),
        scenario(IMPATIENT, SECOND, **ON_AND_ON),
        "nothing_lost",
    ),
    BrokenMender(
        "released past the gap without a document that tells",
        (Change(SKIP, "SaveTogether(entity, document, view.etag)"),),
        scenario(IMPATIENT, SECOND, **ON_AND_ON),
        "in_sequence",
    ),
    BrokenMender(
        "a part of the gap skipped without documents",
        (Change("for number in range(first, following))", "for number in range(first + 1, following))"),),
        scenario(IMPATIENT, FIRST, THIRD, **ON_AND_ON),
        "nothing_lost: web/m0 is acknowledged, but was never committed",
    ),
    BrokenMender(
        "skipped, and what follows is not noted",
        (Change(NEXT, "replace(reception, gap_since=since)"),),
        scenario(IMPATIENT, SECOND, **ON_AND_ON),
        "nothing_lost",
    ),
    BrokenMender(
        "asked for the numbers after the first that is missing",
        (Change(GAP, GAP.replace("reception.next,", "reception.next + 1,")),),
        scenario(ASKING, *LOST, nudges=1),
        "nothing_lost",
    ),
    BrokenMender(
        "asked for all that is missing but the last",
        (Change(GAP, GAP.replace("- 1", "- 2")),),
        scenario(ASKING, *LOST, nudges=1),
        "nothing_lost",
    ),
    BrokenMender(
        "asked for what another read model lacks",
        (Change(ASKED, ASKED.replace("entity.id", "reception.source")),),
        scenario(ASKING, *LOST, nudges=1),
        "nothing_lost",
    ),
    BrokenMender(
        "asked at the destination that the messages come through",
        (Change("return Output(id, rebuild.through,", "return Output(id, rebuild.destination,"),),
        scenario(ASKING, *LOST, nudges=1),
        "nothing_lost",
    ),
    BrokenMender(
        "sent again under new ids",
        (IMPORTS, published('replace(one, id=f"again:{one.id}")')),
        scenario(STREAM, ONE, replays=1),
        "consistent_state_and_output",
    ),
    BrokenMender(
        "sent again with new numbers",
        (IMPORTS, published("replace(one, order=replace(one.order, number=one.order.number + 1))")),
        scenario(STREAM, ONE, replays=1),
        "consistent_state_and_output",
    ),
    BrokenMender(
        "sent again without numbers",
        (IMPORTS, published("replace(one, order=None)")),
        scenario(STREAM, ONE, replays=1),
        "consistent_state_and_output",
    ),
    BrokenMender(
        "sent again as handled on the newest state",
        (Change("    before = point_before(work, version, entries, view.ledger, now)", "    before = now"),),
        scenario(STREAM, ONE, replays=1),
        "raised NonDeterministicHandler",
    ),
    BrokenMender(
        "the first version not sent again",
        (Change(SENT, "range(first + 1, last_here + 1)"),),
        scenario(STREAM, ONE, crashes=1, replays=1),
        "nothing_lost: web/m0 was to be sent again",
    ),
    BrokenMender(
        "the last version not sent again",
        (Change(SENT, "range(first, last_here)"),),
        scenario(STREAM, ONE, crashes=1, replays=1),
        "nothing_lost: web/m0 was to be sent again",
    ),
    BrokenMender(
        "what follows the next whole state not sent again",
        (Change("last_here + 1 if last_here < last else None", "None"),),
        scenario(STREAM, ONE, ONE, ONE, crashes=1, replays=1),
        "nothing_lost: web/m2 was to be sent again",
    ),
    BrokenMender(
        "sent again from entries of any age",
        (
            Change(
                "FindEntries(work.entity, (reach,), view.memory.entity_token)",
                "FindEntries(work.entity, (reach,), None)",
            ),
        ),
        scenario(STREAM, ONE, replays=1, stale=STALE),
        "raised DamagedDocument",
    ),
    BrokenMender(
        "unknown publish taken as sent again",
        (Change("        if published is not PUBLISHED:", "        if not work:"),),
        scenario(STREAM, ONE, crashes=1, unknown=1, replays=1),
        "nothing_lost: web/m0 was to be sent again",
    ),
    BrokenMender(
        "the first number that is missing taken for one that is not",
        (Change(IN_RANGE, IN_RANGE.replace("self.first <=", "self.first <")),),
        asked(missing=(1, 1), crashes=1),
        "nothing_lost: web/m0 was to be sent again",
    ),
    BrokenMender(
        "looked up in a view of any age",
        (Change("(missing.first, missing.last), view.memory.entity_token)", "(missing.first, missing.last), None)"),),
        asked(missing=(1, 1), crashes=1, stale=STALE),
        "nothing_lost: web/m0 was to be sent again",
    ),
    BrokenMender(
        "an older view taken for the end of the stream",
        (Change(OLDER, "    if not work:"),),
        asked(missing=(1, 1), crashes=1, stale=STALE),
        "nothing_lost: web/m0 was to be sent again",
    ),
    BrokenMender(
        "the newest version that is missing not sent again",
        (Change("(min(found.versions), max(found.versions))", "(min(found.versions), min(found.versions))"),),
        asked(missing=(1, 2), crashes=1),
        "nothing_lost: web/m1 was to be sent again",
    ),
)
