"""Histories of a memory store: what its documents say of commits, and that broken protocols are convicted by them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timezone

import pytest
from pydantic import BaseModel

from exactlyonce import Colocated, Context, Destination, Entity, Envelope, Outbox, Resequencer, VersionStream, message
from exactlyonce.effects.attempt import Strategy
from exactlyonce.records.ledger import Ledger, Mark, entity_document, written
from exactlyonce.records.library import BOOKS, Book, library_document
from exactlyonce.records.outbox import OutboxEntry, transaction
from exactlyonce.stores.memory.store import MemoryStore, Partition, Version
from exactlyonce.testing.guarantee import violations
from exactlyonce.testing.world import StoreHistory, World
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json

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


def played(count: int, strategy: Strategy | None = None) -> World:
    """A world in which some messages were added, and shown."""
    world = World((shown,))

    async def play() -> None:
        process = world.process()
        for number in range(count):
            await process.deliver(sums, adds(number), strategy)
        for output in world.published:
            await process.deliver(boards, Envelope.read(output.envelope.text))
        await process.close()

    asyncio.run(play())
    return world


def test_every_message_is_a_commit_with_a_version_of_its_own_also_once_its_mark_has_left() -> None:
    world = played(70)
    facts = world.facts()
    assert violations(facts, drained=True) == ()
    marks = {
        commit.version: commit.message
        for commit in facts.commits
        if commit.entity == REF.key and commit.version is not None
    }
    assert (sorted(marks), len(set(marks.values()))) == ([*range(1, 71)], 70)
    assert {commit.place[1] for commit in facts.commits if commit.place is not None} == {*range(1, 71)}


def test_an_output_that_no_mark_names_is_a_ghost_and_one_that_was_not_sent_is_lost() -> None:
    facts = played(2).facts()
    ghost = replace(facts, published=(*facts.published, replace(facts.published[0], id="0" * 32)))
    assert {violation.property for violation in violations(ghost, drained=True)} == {"no_ghost_output"}
    silent = replace(facts, published=facts.published[1:])
    assert {(violation.property, violation.message) for violation in violations(silent, drained=True)} == {
        ("nothing_lost", "web/m-0")
    }


def marked(name: str, since: int = 1, sent: str = "") -> str:
    return Mark(since, f"{name:-<16}", "i", True, "abcd", sent).text


def judged(*ledgers: Ledger | None, books: tuple[Book, ...] = (), put_back: tuple[int, ...] = ()) -> set[str]:
    """The properties that a history of an entity breaks; these of its writes put its document back. None is no document."""
    store = MemoryStore(lambda: AT)
    log = store.entities[("sum", "a")] = Partition()
    for number, ledger in enumerate(ledgers):
        document = None
        if ledger is not None:
            document = entity_document(Json('{"id":"a"}'), replace(ledger, type="sum", entity=REF.key))
        log.append(Version("a", document, str(number), 0))
    store.library[BOOKS] = Partition()
    for book in books:
        store.library[BOOKS].append(Version(book.id, Json.of(library_document(book)), book.id, 0))
    facts = StoreHistory(store, put_back={str(number) for number in put_back}).facts()
    return {violation.property for violation in violations(facts, drained=True)}


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
        ((ledger(A, B), ledger(C)), {"versions_are_distinct", "versions_rise"}),
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


@pytest.mark.parametrize(
    ("ledgers", "put_back"),
    [
        ((ledger(A), ledger(A, B), ledger(A), ledger(A, C)), 2),
        ((ledger(A), ledger(A, B), ledger(A), ledger(A, B)), 2),
        ((ledger(A), ledger(A, B), ledger(B, C, left=1), ledger(A), ledger(A, C)), 3),
        ((ledger(A), ledger(A, B), None, ledger(B)), 2),
    ],
    ids=["others come then", "the same comes again", "by two versions", "to its absence"],
)
def test_a_document_goes_back_where_it_was_put_back_and_nowhere_else(
    ledgers: tuple[Ledger | None, ...], put_back: int
) -> None:
    assert judged(*ledgers, put_back=(put_back,)) == set()
    assert "versions_rise" in judged(*ledgers)


def test_changes_that_are_made_twice_after_a_document_was_put_back_are_convicted() -> None:
    back = ledger(A), ledger(A, B), ledger(A)
    assert judged(*back, ledger(A, B), ledger(A, B, B), put_back=(2,)) == {"at_most_one_state_change"}
    assert judged(*back, ledger(C), put_back=(2,)) == {"versions_are_distinct"}
    assert judged(*back, ledger(A, B), ledger(A), put_back=(2,)) == {"versions_rise"}


def test_an_entity_may_be_put_back_twice_and_to_a_version_before_the_first_time() -> None:
    once = ledger(A), ledger(A, B), ledger(A, B, C), ledger(A, B), ledger(A, B, C)
    assert judged(*once, ledger(A), ledger(A, C), put_back=(3, 5)) == set()


def test_an_undone_commit_owes_nothing_and_a_commit_that_was_put_back_owes_again() -> None:
    entry = OutboxEntry(f"{'A':-<16}", transaction("b-1", 7), AT, 1)
    owing = ledger(A, outbox=(entry,))
    assert judged(owing, ledger(A, B), owing, put_back=(2,)) == {"termination"}
    assert judged(ledger(), owing, ledger(), put_back=(2,)) == set()


def put_back(again: tuple[int, ...], strategy: Strategy | None = None) -> World:
    """A world where two messages were added after a backup, which was put back; then these arrive."""
    world = played(3, strategy)

    async def play() -> None:
        process = world.process()
        backup = world.backup(REF)
        await process.deliver(sums, adds(3), strategy)
        await process.deliver(sums, adds(4), strategy)
        await process.close()
        world.put_back(backup)
        process = world.process()
        for number in again:
            await process.deliver(sums, adds(number), strategy)
        await process.close()

    asyncio.run(play())
    return world


@pytest.mark.parametrize("strategy", [Outbox(), Colocated(), VersionStream()], ids=lambda strategy: strategy.name)
@pytest.mark.parametrize("again", [(), (3, 4), (4, 3), (4,), (3, 5, 4)], ids=str)
def test_messages_of_an_entity_that_was_put_back_count_as_they_come_again(
    again: tuple[int, ...], strategy: Strategy
) -> None:
    facts = put_back(again, strategy).facts()
    assert violations(facts, drained=True) == ()
    assert len({commit.message for commit in facts.commits if commit.entity == REF.key}) == 3 + len(again)


def test_a_message_that_is_acknowledged_after_its_entity_was_put_back_has_to_be_there() -> None:
    world = put_back((4,))
    facts = replace(world.facts(), acknowledged=frozenset({(REF.key, "web/m-3")}))
    assert [(violation.property, violation.message) for violation in violations(facts, drained=True)] == [
        ("nothing_lost", "web/m-3")
    ]


def test_another_content_of_what_was_undone_is_no_violation_and_a_third_one_is() -> None:
    facts = put_back((4, 3)).facts()
    contents = {(item.id, item.envelope.text) for item in facts.published}
    assert len(contents) == len({id for id, _ in contents}) + 2
    made_up = replace(facts.published[-1], envelope=Json('{"made":"up"}'))
    forged = replace(facts, published=(*facts.published, made_up))
    assert {violation.property for violation in violations(forged, drained=True)} == {"at_most_one_output"}
