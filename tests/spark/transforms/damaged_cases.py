"""Entities in each of which one thing is broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from exactlyonce.records.answers import Answer
from exactlyonce.records.kept import Kept
from exactlyonce.records.ledger import Ledger
from exactlyonce.records.outputs import Output
from exactlyonce.records.receptions import Reception
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import message_key
from spark_jobs.transforms.schemas import LIBRARY
from tests.spark.transforms.dumping import Stored
from tests.spark.transforms.planting import (
    DAY,
    HOUR,
    MINUTE,
    NOW,
    Planted,
    colocated,
    keeps,
    kept,
    numbered,
    on_the_wire,
    outbox,
    placed,
    reader,
    received,
    record,
    ref,
    requested,
    seconds,
    sent,
    staged,
    stream,
    stream_entry,
    told,
    with_calls,
    with_entries,
)

Plant = Callable[[str], list[Planted]]
NOBODY, SOMEBODY = "shop/of%20nobody", "shop/of%20somebody"


def applied_twice(case: str) -> list[Planted]:
    planted = outbox(case)
    again = told(planted.entity, 6, 2 * DAY, message="web/m-2", tx="tx-new")
    return [with_entries(planted, told(planted.entity, 5, 3 * DAY), again)]


def applied_twice_in_a_stream(case: str) -> list[Planted]:
    planted = stream(case)
    again = told(planted.entity, 4, 2 * DAY, message="web/m-2", tx="tx-new")
    # Its own entry has the id; the other one was put there under another.
    other = Stored(
        "shop", _as_stored(planted, stream_entry(planted.entity, again), "entry:other"), ("/tenant", "/owner/name")
    )
    return [replace(planted, companions=planted.companions[:3], more=[other])]


def _as_stored(planted: Planted, companion: Any, id: str) -> dict[str, Any]:
    (stored,) = [
        one
        for one in replace(planted, companions=[(companion, 2 * DAY)], records=[], more=[]).stored()
        if "_kind" in one.document
    ]
    return {**stored.document, "id": id}


def two_changes(case: str) -> list[Planted]:
    planted = outbox(case)
    rival = told(planted.entity, 5, 3 * DAY, message="web/m-0", tx="tx-0")
    planted.records.append((kept(planted.entity, rival), 3 * DAY))
    return [planted]


def two_transactions(case: str) -> list[Planted]:
    planted = outbox(case)
    planted.records.append((kept(planted.entity, told(planted.entity, 5, 3 * DAY, tx="tx-0")), 3 * DAY))
    return [planted]


def hole_among_records(case: str) -> list[Planted]:
    planted = outbox(case)
    del planted.records[1:3]
    return [planted]


def hole_in_the_ledger(case: str) -> list[Planted]:
    planted = outbox(case, versions=9, left=5)
    entries = [told(planted.entity, number, (11 - number) * DAY) for number in (6, 7, 9)]
    return [with_entries(planted, *entries)]


def newest_entry_gone(case: str) -> list[Planted]:
    planted = outbox(case)
    return [with_entries(planted, told(planted.entity, 5, 3 * DAY))]


def newest_entry_gone_above_what_is_old(case: str) -> list[Planted]:
    planted = outbox(case)
    commits = [told(planted.entity, number, 40 * DAY) for number in (4, 5)]
    planted.records = [(kept(planted.entity, one), 40 * DAY) for one in commits]
    return [with_entries(planted)]


def nothing_is_recorded(case: str) -> list[Planted]:
    return [with_entries(replace(outbox(case), records=[]))]


def hole_in_companions(case: str) -> list[Planted]:
    planted = colocated(case)
    del planted.companions[2]
    return [planted]


def hole_at_the_top_of_a_stream(case: str) -> list[Planted]:
    planted = stream(case)
    del planted.companions[3]
    return [planted]


def number_passed_over(case: str) -> list[Planted]:
    planted = reader(case)
    del planted.companions[1:3]
    return [planted]


def removed_since_the_last_audit(case: str) -> list[Planted]:
    return [replace(outbox(case, versions=40, left=38), records=[])]


def removed_though_seen(case: str) -> list[Planted]:
    """The mailer saw the output of the second commit half a day ago, and nothing is kept of that commit."""
    planted = outbox(case)
    planted.records = planted.records[2:]
    mailer = ref("mailer", f"{case}:mailer")
    message = on_the_wire(planted.entity, sent(planted.entity, "web/m-2"))
    ledger = Ledger(version=1, entries=(told(mailer, 1, DAY / 2, message=message),), type="mailer")
    return [planted, Planted(mailer, ledger, DAY / 2)]


def document_gone(make: Callable[[str], Planted]) -> Plant:
    """Only what lies elsewhere is left."""
    return lambda case: [replace(make(case), gone=True)]


def gone_since_an_audit(case: str) -> list[Planted]:
    """All that was kept of it lay in its document."""
    return []


def made_anew(case: str) -> list[Planted]:
    """The ledger counts from 1 again; of the first two versions that the entity had before nothing is left."""
    planted = outbox(case)
    commits = [told(planted.entity, number, HOUR, tx=f"tx-new-{number}", outputs=()) for number in (1, 2)]
    ledger = Ledger(version=2, entries=tuple(commits), type="shop")
    return [replace(planted, ledger=ledger, age=HOUR, records=planted.records[2:])]


def fallen_behind_an_audit(case: str) -> list[Planted]:
    return [outbox(case, versions=2, left=0)]


def without_its_ledger(case: str) -> list[Planted]:
    return [replace(outbox(case), ledger=None)]


def number_above_the_next(case: str) -> list[Planted]:
    """A document of the read model of before: of one source it says less, and of another nothing."""
    board = reader(case)
    board.companions.append((numbered(board.entity, 1, DAY, source=SOMEBODY), DAY))
    return [_receiving(board, received(NOBODY, 3))]


def recorded_in_two_ways(case: str) -> list[Planted]:
    planted = outbox(case)
    entry = told(planted.entity, 5, 3 * DAY)
    planted.records.append((replace(kept(planted.entity, entry), digest="another"), DAY))
    return [planted]


def one_id_twice(case: str) -> list[Planted]:
    planted = colocated(case)
    output = sent(planted.entity, "web/m-2")
    other = told(planted.entity, 3, 3 * DAY, outputs=(output,))
    last = told(planted.entity, 4, 2 * DAY, outputs=(sent(planted.entity, "web/m-4"),) * 2)
    planted.companions[2:] = [(record(planted.entity, other), 3 * DAY), (record(planted.entity, last), 2 * DAY)]
    return [planted]


def one_number_twice(case: str) -> list[Planted]:
    planted = outbox(case)
    place = placed(planted.entity.source, ref("reader", case), 1)
    entries = [
        told(planted.entity, number, DAY, outputs=(sent(planted.entity, f"web/m-{number}", place=place),))
        for number in (5, 6)
    ]
    return [with_entries(planted, *entries)]


def ghost(case: str) -> list[Planted]:
    """The mailer saw a message of the shop's that none of its commits lists; a reader took one, too."""
    planted = outbox(case)
    messages = [on_the_wire(planted.entity, sent(planted.entity, f"web/ghost-{number}")) for number in (1, 2)]
    mailer, read = ref("mailer", f"{case}:mailer"), reader(f"{case}:reader", taken=1, source=planted.entity.source)
    ledger = Ledger(version=1, entries=(told(mailer, 1, DAY, message=messages[0]),), type="mailer")
    read.companions = [(numbered(read.entity, 1, DAY, source=planted.entity.source, message=messages[1]), DAY)]
    return [planted, Planted(mailer, ledger), read]


def owing(case: str) -> list[Planted]:
    planted = outbox(case)
    return [with_entries(planted, told(planted.entity, 5, 3 * DAY, owed="staged", staged=True), *_last(planted))]


def kept_too_long(case: str) -> list[Planted]:
    """Three messages are kept: one is long overdue, one has lost its document, and one is in order."""
    planted = outbox(case)
    assert planted.ledger is not None
    due = {"o-1": NOW - DAY, "o-2": NOW + DAY, "o-3": NOW + DAY}
    kept = tuple(Kept(id, at, f"tx-{id}-kept") for id, at in due.items())
    planted.ledger = replace(planted.ledger, kept=kept)
    planted.records += [(keeps(planted.entity, f"tx-{id}-kept"), 40 * DAY) for id in ("o-1", "o-3")]
    return [planted]


def _last(planted: Planted) -> tuple[Any, ...]:
    assert planted.ledger is not None
    return planted.ledger.entries[-1:]


def owing_in_companions(case: str) -> list[Planted]:
    planted = colocated(case)
    output = Output(sent(planted.entity, "web/m-4").id, "else", Json.of({"secret": 5}))
    owes = record(planted.entity, told(planted.entity, 4, 2 * DAY))
    planted.companions[3] = (replace(owes, owed=(output,), owing_since=owes.at), 2 * DAY)
    return [planted]


def lost(case: str) -> list[Planted]:
    planted = outbox(case)
    outputs = (
        sent(planted.entity, "web/m-5", 0, "mails"),
        sent(planted.entity, "web/m-5", 1, "reports", placed(planted.entity.source, ref("reader", case), 3)),
    )
    newest = told(planted.entity, 6, 59 * MINUTE, outputs=(sent(planted.entity, "web/m-6", destination="mails"),))
    return [with_entries(planted, told(planted.entity, 5, 2 * HOUR, outputs=outputs), newest)]


def orphan(case: str) -> list[Planted]:
    planted = outbox(case)
    planted.records.append((staged(planted.entity, told(planted.entity, 7, 8 * DAY)), 7 * DAY + 1 * MINUTE))
    return [planted]


def requests_left(case: str) -> list[Planted]:
    planted = outbox(case)
    late, old = 37 * DAY + 1 * MINUTE, 36 * DAY
    planted.records.append((requested(planted.entity, "left-open", answered=False), late))
    planted.records.append((requested(planted.entity, "left-answered", answered=True), late))
    planted.records.append((requested(planted.entity, "not-yet", answered=False), old))
    return [planted]


def waiting(case: str) -> list[Planted]:
    board = reader(case)
    return [_receiving(board, received(NOBODY, 5, held=((7, 7), (9, 10)), gap_since=NOW - 11 * MINUTE), 7, 9, 10)]


def _receiving(board: Planted, reception: Reception, *held: int) -> Planted:
    assert board.ledger is not None
    body = Json.of({"secret": 6})
    board.companions += [
        (numbered(board.entity, one, 11 * MINUTE, source=NOBODY, held=body), 11 * MINUTE) for one in held
    ]
    return replace(board, ledger=replace(board.ledger, receptions=(reception,)))


def skipped(case: str) -> list[Planted]:
    board = reader(case)
    gone = [numbered(board.entity, number, DAY, source=NOBODY, message=None) for number in (2, 3)]
    board.companions[1:3] = [(one, DAY) for one in gone]
    return [board]


def two_with_one_number(case: str) -> list[Planted]:
    board = reader(case)
    other = numbered(board.entity, 2, DAY, source=NOBODY, message=message_key(NOBODY, "other"))
    board.more = [Stored("reader", _as_stored(board, other, "numbered:other"), ("/tenant", "/owner/name"))]
    return [board]


def stuck(case: str) -> list[Planted]:
    return [_receiving(reader(case), received(NOBODY, 5, held=((5, 6),), failing="HandlerFailed"), 5, 6)]


def held_and_gone(case: str) -> list[Planted]:
    return [_receiving(reader(case), received(NOBODY, 5, held=((6, 8),), gap_since=NOW - 9 * MINUTE), 6, 8)]


def newer(case: str) -> list[Planted]:
    """A record of a newer version: there is no hole, as far as anybody can tell."""
    planted = outbox(case)
    planted.records[1] = (replace(planted.records[1][0], schema=2), DAY)
    return [planted]


def damaged(case: str) -> list[Planted]:
    planted = outbox(case)
    entity = planted.entity
    document = {
        "pk": entity.key,
        "kind": "processed",
        "schema": 1,
        "message": "web/m-9",
        "_etag": '"1"',
        "_ts": seconds(DAY),
    }
    planted.more = [
        Stored(LIBRARY, {"id": f"{case}:1", **document}),
        Stored(LIBRARY, {"id": f"{case}:2", **document, "kind": "strange"}),
    ]
    return [planted]


def answered_in_two_ways(case: str) -> list[Planted]:
    """A record beside its entry has another status, and one a fingerprint of another request."""
    planted = outbox(case)
    answer = Answer(201, (), '{"secret":7}', "sha256:1")
    entries = [told(planted.entity, number, (8 - number) * DAY, answer=answer) for number in (5, 6)]
    others = (replace(answer, status=409), replace(answer, asked="sha256:2"))
    for entry, other in zip(entries, others, strict=True):
        planted.records.append((kept(planted.entity, replace(entry, answer=other)), DAY))
    return [with_entries(planted, *entries)]


def never_answered(case: str) -> list[Planted]:
    """Two calls are listed by their commits, of which one is young; nothing tells of a third."""
    planted = outbox(case)
    ages = {5: 2 * DAY, 6: 2 * DAY - MINUTE}
    planted = with_entries(planted, *(told(planted.entity, number, age) for number, age in ages.items()))
    planted = with_calls(planted, *(sent(planted.entity, f"web/m-{number}").id for number in ages))
    return [planted, with_calls(outbox(f"{case}:quiet"), NOBODY)]
