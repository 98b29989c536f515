"""More of the zoo: what can go wrong with the resequencer if one line is missing, and where it shows."""

from __future__ import annotations

from datetime import timedelta

from devtools.modelcheck.beside.catalogue import ONE_AT_A_TIME
from devtools.modelcheck.beside.scenarios import Message, scenario_of
from devtools.modelcheck.scenarios import UNLIMITED
from devtools.modelcheck.twins import Change
from exactlyonce.protocols.resequencer.protocol import Resequencer
from tests.model.broken_beside import STALE, BrokenBeside, scenario
from tests.model.broken_strategies import before

READ_MODEL = scenario_of("resequencer", (), Resequencer())
FIRST, SECOND, THIRD = (Message(number=number) for number in (1, 2, 3))
FIRST_TWICE, SECOND_TWICE = Message(2, number=1), Message(2, number=2)
SHAKY = Message(number=1, raises=True)

SAVE = "SaveTogether(entity, document, view.etag, tuple(release.create), tuple(release.replace))"
SAVED = f"    saved = yield from {SAVE}"
ORDERED = scenario_of("resequencer, one order", (), Resequencer(order="time", max_wait=timedelta(days=100)))
A, B = Message(source="a", number=1, time=2), Message(source="b", number=1, time=2)
LATER = Message(source="a", number=1, time=3)
WAIT = "    return source if at - min(head.since for head in heads.values()) >= max_wait else None"
PASSED = "(one.passed, one.source) > (time, source)"
LATE = "late = self._max_wait is not None and is_late(envelope, self._receptions.values())"

HOLD = "        self.create.append(NumberedMessage(self._work.entity.key, source, order, key, begun.at, held=wire))\n"
OWED = "        remembered = yield from publish_owed(entity, view.ledger.entries, view)\n"
STOP = (
    "            self._receptions[source] = replace(reception, failing=type(error).__name__)\n            return False"
)
PLACED = "            first = self.arrived.setdefault((envelope.source, order.number), envelope)"
CREATED = "            self.create.append(document)"

BROKEN_RESEQUENCERS: tuple[BrokenBeside, ...] = (
    BrokenBeside(
        "held without a condition",
        (Change(SAVE, SAVE.replace("view.etag", 'view.etag if release.processed else "*"')),),
        scenario(READ_MODEL, FIRST, SECOND),
        "serial_execution",
    ),
    BrokenBeside(
        "released without a condition",
        (Change(SAVE, SAVE.replace("view.etag", '"*" if release.processed else view.etag')),),
        scenario(READ_MODEL, FIRST, SECOND),
        "no_garbage",
    ),
    BrokenBeside(
        "acknowledged after a part of a release",
        (*ONE_AT_A_TIME, Change("    if release.more:", "    if not release:")),
        scenario(READ_MODEL, FIRST, SECOND),
        "nothing_lost",
    ),
    BrokenBeside(
        "held messages read in a view of any age",
        (Change("LoadBeside(entity, tuple(ids), view.memory.entity_token)", "LoadBeside(entity, tuple(ids), None)"),),
        scenario(READ_MODEL, FIRST, SECOND_TWICE, stale=STALE),
        "raised DamagedDocument",
    ),
    BrokenBeside(
        "messages that were released meanwhile taken for held ones",
        (Change("    if release.is_behind(known):", "    if not release:"),),
        scenario(READ_MODEL, FIRST_TWICE, SECOND),
        "raised AssertionError",
    ),
    BrokenBeside(
        "a copy handled again",
        (
            before(PLACED, "self._receptions[envelope.source] = Reception(envelope.source, order.number)"),
            Change(CREATED, '            self.replace.append((document, "*"))'),
        ),
        scenario(READ_MODEL, FIRST_TWICE),
        "at_most_one_state_change",
    ),
    BrokenBeside(
        "a gap ignored",
        (before(PLACED, "self._receptions[envelope.source] = Reception(envelope.source, order.number)"),),
        scenario(READ_MODEL, FIRST, SECOND),
        "in_sequence",
    ),
    BrokenBeside(
        "a message whose handler raises is skipped",
        (
            Change(
                STOP,
                "            self._receptions[source] = replace(reception, next=reception.next + 1)\n            return True",
            ),
        ),
        scenario(READ_MODEL, SHAKY, raising=1, nudges=UNLIMITED),
        "nothing_lost",
    ),
    BrokenBeside(
        "an early message noted as held, and not kept",
        (Change(HOLD, ""),),
        scenario(READ_MODEL, FIRST, SECOND),
        "nothing_lost",
    ),
    BrokenBeside(
        "an early message acknowledged, and not held",
        (Change("                self._hold(place, envelope, begun)", "                pass"),),
        scenario(READ_MODEL, FIRST, SECOND),
        "nothing_lost",
    ),
    BrokenBeside(
        "two messages with one number taken for copies",
        (Change("        elif document.message != key_of(envelope):", "        elif not document:"),),
        scenario(READ_MODEL, FIRST, FIRST),
        "nothing_lost",
    ),
    BrokenBeside(
        "what is owed is not published",
        (Change(OWED, "        remembered = view.memory\n"),),
        scenario(READ_MODEL, FIRST, crashes=1),
        "nothing_lost",
    ),
    BrokenBeside(
        "published before the batch",
        (before(SAVED, "if release.outputs:\n    early = yield from Publish(tuple(release.outputs))"),),
        scenario(READ_MODEL, FIRST),
        "no_ghost_output",
    ),
    BrokenBeside(
        "unknown publish taken as done",
        (Change("        if published is not PUBLISHED:", "        if not entity:"),),
        scenario(READ_MODEL, FIRST, SECOND, unknown=1),
        "nothing_lost",
    ),
    BrokenBeside(
        "remembered as published before publishing",
        (
            Change(
                '            return Again(memory, "the outputs could not be published")',
                "            owed = read_entity(entity, document).ledger or view.ledger\n"
                "            memory = replace(memory, published=owed.owing)\n"
                '            return Again(memory, "the outputs could not be published")',
            ),
        ),
        scenario(READ_MODEL, FIRST, unknown=1),
        "nothing_lost",
    ),
    BrokenBeside(
        "conflict taken for a message that is held already",
        (
            before(
                "    if not isinstance(saved, Saved):",
                "if not isinstance(saved, Saved) and not release.processed:\n    return view.memory",
            ),
        ),
        scenario(READ_MODEL, FIRST, SECOND),
        "nothing_lost",
    ),
    BrokenBeside(
        "silent sources not waited for",
        (Change(WAIT, "    return source"),),
        scenario(ORDERED, A, B, nudges=UNLIMITED),
        "in_order",
    ),
    BrokenBeside(
        "a source that passed just this time not waited for",
        (Change(PASSED, "one.passed >= time"),),
        scenario(ORDERED, A, B, nudges=UNLIMITED),
        "in_order",
    ),
    BrokenBeside(
        "what comes too late is not told",
        (Change(LATE, "late = False"),),
        scenario(ORDERED, LATER, B, nudges=UNLIMITED),
        "in_order: whether b/m1 is late is told wrongly",
    ),
)
