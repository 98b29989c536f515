"""Histories of a memory store: what its documents say of commits, and that broken protocols are convicted by them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timezone

import pytest
from pydantic import BaseModel

from exactlyonce import Context, Destination, Entity, Envelope, Outbox, Resequencer, message
from exactlyonce.records.books import BOOKS, Book, transaction
from exactlyonce.records.ledger import Ledger, entity_document
from exactlyonce.records.library import library_document
from exactlyonce.records.marks import Mark, written
from exactlyonce.records.outbox import OutboxEntry
from exactlyonce.stores.memory.partitions import Partition, Version
from exactlyonce.stores.memory.store import MemoryStore
from exactlyonce.testing.guarantee import Facts, violations
from exactlyonce.testing.history import StoreHistory
from exactlyonce.testing.world import World
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.identity import EntityRef

AT = datetime(2026, 1, 1, tzinfo=timezone.utc)
REF = EntityRef("sum", ("a",), "a")


@message("test.histories.add")
class Add(BaseModel):
    key: str = "a"


@message("test.histories.added")
class Added(BaseModel):
    key: str
    total: int


class Sum(BaseModel):
    total: int = 0


sums = Entity("sum", state=Sum, container="sums", strategy=Outbox())
boards = Entity("board", state=Sum, container="boards", partition_key="/board", strategy=Resequencer())
shown = Destination("shown", to=boards)


@sums.handles(Add, key=lambda add: add.key)
def add(state: Sum, add: Add, context: Context) -> Sum:
    context.send("shown", Added(key=add.key, total=state.total + 1))
    return Sum(total=state.total + 1)


@boards.handles(Added, key=lambda added: added.key)
def show(state: Sum, added: Added, context: Context) -> Sum:
    return Sum(total=added.total)


def adds(number: int) -> Envelope:
    return Envelope("web", f"m-{number}", "test.histories.add", Json('{"key":"a"}'), AT)


def played(count: int) -> World:
    """A world in which some messages were added, and shown."""
    world = World((shown,))

    async def play() -> None:
        process = world.process()
        for number in range(count):
            await process.deliver(sums, adds(number))
        for output in world.published:
            await process.deliver(boards, Envelope.read(output.envelope.text))
        await process.close()

    asyncio.run(play())
    return world


def test_every_message_is_a_commit_with_a_version_of_its_own_also_once_its_mark_has_left() -> None:
    world = played(70)
    facts = world.facts()
    assert violations(facts, drained=True) == ()
    marks = {one.version: one.message for one in facts.commits if one.entity == REF.key and one.version is not None}
    assert (sorted(marks), len(set(marks.values()))) == ([*range(1, 71)], 70)
    assert {one.place[1] for one in facts.commits if one.place is not None} == {*range(1, 71)}


def test_an_output_that_no_mark_names_is_a_ghost_and_one_that_was_not_sent_is_lost() -> None:
    facts = played(2).facts()
    ghost = replace(facts, published=(*facts.published, replace(facts.published[0], id="0" * 32)))
    assert {one.property for one in violations(ghost, drained=True)} == {"no_ghost_output"}
    silent = replace(facts, published=facts.published[1:])
    assert {(one.property, one.message) for one in violations(silent, drained=True)} == {("nothing_lost", "web/m-0")}


def marked(name: str, since: int = 1, sent: str = "") -> str:
    return Mark(since, f"{name:-<16}", "i", True, "abcd", sent).text


def judged(*ledgers: Ledger, books: tuple[Book, ...] = ()) -> set[str]:
    """The properties that a history of an entity breaks."""
    store = MemoryStore(lambda: AT)
    log = store.entities[("sum", "a")] = Partition()
    for number, ledger in enumerate(ledgers):
        document = entity_document(Json('{"id":"a"}'), replace(ledger, type="sum", entity=REF.key))
        log.append(Version("a", document, str(number), 0))
    store.library[BOOKS] = Partition()
    for book in books:
        store.library[BOOKS].append(Version(book.id, Json.of(library_document(book)), book.id, 0))
    history = StoreHistory(store)
    facts = Facts(tuple(history.commits), owing=history.owing)
    return {one.property for one in violations(facts, drained=True)}


def ledger(*marks: str, left: int = 0, outbox: tuple[OutboxEntry, ...] = ()) -> Ledger:
    return Ledger(len(marks) + left, marks=written(marks), left=left, outbox=outbox)


A, B, C = (marked(name, since) for since, name in enumerate("ABC"))


@pytest.mark.parametrize(
    ("ledgers", "broken"),
    [
        ((ledger(A), ledger(A, B), ledger(B, C, left=1)), set()),
        ((ledger(A, B), ledger(C, left=2)), set()),
        ((ledger(A), ledger(A, A)), {"at_most_one_state_change"}),
        ((ledger(A), ledger(B, left=1), ledger(A, B, left=1)), {"at_most_one_state_change"}),
        ((ledger(A), ledger(A, left=1)), {"at_most_one_state_change"}),
        ((ledger(A), ledger(B)), {"versions_are_distinct"}),
        ((ledger(A, B), ledger(C)), {"versions_are_distinct"}),
    ],
    ids=["one leaves", "two leave", "twice", "after it left", "as it leaves", "over another", "over two others"],
)
def test_a_message_that_is_committed_twice_and_a_change_that_is_lost_are_convicted(
    ledgers: tuple[Ledger, ...], broken: set[str]
) -> None:
    assert judged(*ledgers) == broken


def test_an_entry_owes_until_a_book_pays_it_or_it_is_dropped() -> None:
    entry = OutboxEntry(f"{'A':-<16}", transaction("b-1", 7), AT, 1)
    owing = ledger(A, outbox=(entry,))
    assert judged(owing) == {"termination"}
    assert judged(owing, books=(Book("b-1", used=6),)) == {"termination"}
    assert judged(owing, books=(Book("b-1", used=9, open=(7,)),)) == {"termination"}
    assert judged(owing, books=(Book("b-2", used=9),)) == {"termination"}
    assert judged(owing, books=(Book("b-1", used=9, open=(7,)), Book("b-1", used=9, open=(8,)))) == set()
    assert judged(owing, ledger(A, B)) == set()


def test_two_transactions_of_one_message_are_convicted() -> None:
    entry = OutboxEntry(f"{'A':-<16}", transaction("b-1", 7), AT, 1)
    again = replace(entry, tx=transaction("b-1", 8))
    ledgers = ledger(A, outbox=(entry,)), ledger(A, B, outbox=(again,))
    assert judged(*ledgers, books=(Book("b-1", used=9),)) == {"at_most_one_state_change"}
