"""What one attempt does, step by step, whatever the protocol; and the life of an entity: adopted, deleted, of one protocol."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from exactlyonce import ConfigurationError, Outbox, TryAgainLater
from exactlyonce.effects.attempt import Before, Handled, Memory
from exactlyonce.effects.companions import FindEntries, HasCompanions, LoadCompanions, ReplaceCompanions, SaveBatch
from exactlyonce.effects.effect import UNKNOWN, Begin, Step, Together
from exactlyonce.effects.entity import Conflict, LoadEntity, Publish, SaveEntity
from exactlyonce.effects.library import WriteOnce
from exactlyonce.errors import DamagedDocument, EntityTooLarge, LedgerRemoved, NewerSchema, OutputTooLarge
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.protocols.outbox.clean import clean_staged
from exactlyonce.protocols.steps.batch import BATCH_BYTES
from exactlyonce.records.companions import companion_document, entry_id, record_id
from exactlyonce.records.ledger import LEDGER, MAX_DOCUMENT_BYTES, Ledger, entity_document
from exactlyonce.records.outbox import Output, Reception
from exactlyonce.testing.contracts.samples import a_colocated
from exactlyonce.values.envelope import STABLE_TIME, EntityRef, Envelope
from exactlyonce.values.frozen_json import Json
from tests.asking import settle, settle_by, sweep, unhandled
from tests.samples import accounts, breaking, close, deposit
from tests.unit.bookkeeping import tx
from tests.unit.protocols.by_protocol import BOTH, PROTOCOLS
from tests.unit.protocols.gallery import in_order
from tests.unit.script import ABSENT, ENTITY, Played, Script, attempt, numbers, receipts


def remembered(script: Script) -> list[Any]:
    """What the protocol keeps of each message."""
    return list(script.companions)


def versions(script: Script) -> list[tuple[str, int, str]]:
    return [(item.message, item.version, item.tx) for item in remembered(script)]


@BOTH
class TestTheFirstTime:
    def test_everything_is_committed_at_once_and_published_after_that(self, protocol: str, script: Script) -> None:
        played = script.play(attempt(PROTOCOLS[protocol], deposit("m-1", answers=2)))
        marking = [ReplaceCompanions] if protocol == "colocated" else []
        assert played.kinds == [Together, Begin, SaveBatch, Publish, *marking]
        assert played.effects[2].etag is None  # type: ignore[attr-defined]
        assert versions(script) == [("web/m-1", 1, "tx-1")]
        assert [output.ref for output in played.only(Publish).outputs] == list(remembered(script)[0].outputs)
        assert (script.ledger.version, script.ledger.type) == (1, "account")
        assert played.finished.processed == ("web/m-1",)

    def test_a_group_is_one_commit_that_remembers_each_message(self, protocol: str, script: Script) -> None:
        group = (deposit(f"m-{number}", amount=number) for number in (1, 2, 3))
        played = script.play(attempt(PROTOCOLS[protocol], *group))
        assert versions(script) == [("web/m-1", 1, "tx-1"), ("web/m-2", 2, "tx-2"), ("web/m-3", 3, "tx-3")]
        assert (played.only(Begin).count, len(played.all(SaveBatch))) == (3, 1)
        assert script.body is not None
        assert (script.body["total"], script.ledger.version) == (6, 3)
        assert numbers(script.published) == [1, 2, 3]

    def test_a_handler_that_raises_takes_nothing_of_its_group_along(self, protocol: str, script: Script) -> None:
        played = script.play(attempt(PROTOCOLS[protocol], deposit("m-1"), breaking("m-2"), deposit("m-3")))
        assert played.finished.processed == ("web/m-1", "web/m-3")
        assert [key for key, _ in played.finished.failed] == ["web/m-2"]
        assert [(message, version) for message, version, _ in versions(script)] == [("web/m-1", 1), ("web/m-3", 2)]
        assert numbers(script.published) == [1, 2]


@BOTH
class TestCompanions:
    def test_the_reads_go_side_by_side_and_carry_the_token_that_is_remembered(self, protocol: str) -> None:
        script = Script()
        memory = script.play(attempt(PROTOCOLS[protocol], deposit("m-1"))).finished.memory
        assert memory == Memory(entity_token="0:-1#2")
        messages = (deposit("m-2"), deposit("m-3"))
        both = script.play(attempt(PROTOCOLS[protocol], *messages, memory=memory)).only(Together)
        make = record_id if protocol == "colocated" else entry_id
        ids = (make(ENTITY, "web/m-2"), make(ENTITY, "web/m-3"))
        assert both == Together(LoadEntity(ENTITY, "0:-1#2"), LoadCompanions(ENTITY, ids, "0:-1#2"))

    def test_outputs_carry_the_time_of_a_cause_that_has_one(self, protocol: str) -> None:
        script, strategy = Script(), PROTOCOLS[protocol]
        stable = ((STABLE_TIME, "2025-12-31T12:00:00.000Z"),)
        script.play(attempt(strategy, replace(deposit("m-1"), extensions=stable), deposit("m-2")))
        times = [output.envelope.value.get(STABLE_TIME) for output in script.published]
        assert times == ["2025-12-31T12:00:00.000Z", None]

    def test_a_group_fits_one_batch(self, protocol: str) -> None:
        strategy = PROTOCOLS[protocol]
        assert strategy.group_limit == 50
        messages = (deposit(f"m-{number}") for number in range(strategy.group_limit))
        assert len(Script().play(attempt(strategy, *messages)).finished.processed) == 50
        assert strategy.forgets(deposit("m-1"))


@BOTH
class TestNoAnswers:
    def test_reasons_read_as_the_end_of_a_sentence(self, protocol: str) -> None:
        kinds: list[Any] = [LoadEntity, LoadCompanions, SaveBatch, Publish]
        for kind in [*kinds, FindEntries] if protocol == "stream" else kinds:
            script = Script()
            script.play(attempt(PROTOCOLS[protocol], deposit("m-1")), {Publish: UNKNOWN})
            group = (deposit("m-1"), deposit("m-2"))
            reason = script.play(attempt(PROTOCOLS[protocol], *group), {kind: UNKNOWN}).again.reason
            assert reason[0].islower()
            assert not reason.endswith(".")

    @pytest.mark.parametrize("reply", [UNKNOWN, Conflict("0:-1#9"), Conflict(None)])
    def test_an_uncertain_commit_is_not_published(self, protocol: str, reply: Any) -> None:
        played = Script().play(attempt(PROTOCOLS[protocol], deposit("m-1")), {SaveBatch: reply})
        assert played.kinds == [Together, Begin, SaveBatch]
        token = "0:-1#9" if reply == Conflict("0:-1#9") else "0:-1#0"
        assert played.again.memory.entity_token == token
        assert not played.again.progressed


BASE = "https://account.blob.core.windows.net/blobs"
HANDLE = Runner(accounts(), ENTITY, Routes({"receipts": 500}, blobs=BASE))
PROTOCOL = pytest.mark.parametrize("protocol", ["outbox", "colocated", "stream"])


def process(world: Script, protocol: str, *messages: Any, replies: dict[Any, Any] | None = None) -> Played:
    return world.play(attempt(PROTOCOLS[protocol], *messages, handle=HANDLE), replies)


def large(number: int) -> Any:
    """A deposit whose receipt does not fit its queue."""
    return deposit(f"m-{number}", padding="x" * 1_000)


@PROTOCOL
def test_blobs_are_written_before_the_commit_and_messages_that_name_them_sent_after_it(protocol: str) -> None:
    world = Script()
    played = process(world, protocol, large(1))
    commit = SaveEntity if protocol == "outbox" else SaveBatch
    kinds = [kind for kind in played.kinds if kind in (WriteOnce, commit, Publish)]
    assert kinds == [WriteOnce, commit, Publish]
    (blob,) = played.only(WriteOnce).blobs
    assert blob.author is not None
    assert (blob.author.entity, blob.author.message, blob.author.tx) == (
        ENTITY,
        "web/m-1",
        tx(1) if protocol == "outbox" else "tx-1",
    )
    assert [output.envelope.value["dataref"] for output in world.published] == [f"{BASE}/{blob.name}"]


@PROTOCOL
@pytest.mark.parametrize("reply", [UNKNOWN, None])
def test_where_blobs_may_not_be_there_nothing_is_committed_and_the_next_attempt_writes_others(
    protocol: str, reply: Any
) -> None:
    world = Script()
    played = process(world, protocol, large(1), replies={WriteOnce: reply})
    assert "blobs" in played.again.reason
    assert not played.again.progressed
    assert {SaveBatch, SaveEntity}.isdisjoint(played.kinds)
    assert world.document is None
    (lost,) = played.only(WriteOnce).blobs
    (kept,) = process(world, protocol, large(1)).only(WriteOnce).blobs
    assert lost.content == kept.content
    assert lost.name != kept.name


@PROTOCOL
def test_blobs_of_a_group_are_written_together_and_those_of_what_failed_not_at_all(protocol: str) -> None:
    played = process(Script(), protocol, large(1), breaking("m-2"), large(3))
    assert [blob.author.message for blob in played.only(WriteOnce).blobs if blob.author] == ["web/m-1", "web/m-3"]


FOREIGN = Json.of({"id": "a", "owner": "a", "total": 40, "colour": "red"})


def processed(protocol: str, *messages: Envelope) -> Script:
    """An entity that processed these messages, one after the other."""
    script = Script()
    for message in messages:
        script.play(attempt(PROTOCOLS[protocol], message))
    return script


def robbed(protocol: str) -> Script:
    """An entity that processed messages, whose ledger was removed."""
    script = processed(protocol, deposit("m-1"))
    assert script.document is not None
    script.put(Json.of({name: value for name, value in script.document.value.items() if name != LEDGER}))
    return script


@BOTH
class TestAdoption:
    def test_a_document_without_ledger_or_records_is_adopted_as_it_is(self, protocol: str) -> None:
        script = Script(FOREIGN)
        played = script.play(attempt(PROTOCOLS[protocol], deposit("m-1", amount=2, answers=0)))
        assert played.kinds == [Together, HasCompanions, Begin, SaveBatch]
        assert played.effects[-1].etag == '"1"'  # type: ignore[attr-defined]
        assert script.body is not None
        assert (script.body["total"], script.body["colour"]) == (42, "red")
        assert (script.ledger.version, script.ledger.type, script.ledger.token) == (1, "account", None)

    def test_companions_of_a_neighbour_are_no_reason_not_to_adopt(self, protocol: str) -> None:
        script = Script(FOREIGN)
        neighbour = EntityRef("account", ENTITY.partition, "b")
        document = Json.of({"id": "b", "owner": "a"})
        script.usual(SaveBatch(neighbour, document, None, (a_colocated(neighbour, "web/m-1"),)))
        assert script.play(attempt(PROTOCOLS[protocol], deposit("m-1"))).finished.processed == ("web/m-1",)

    def test_a_ledger_that_was_removed_is_refused_behind_a_fence_that_changes_nothing(self, protocol: str) -> None:
        script = robbed(protocol)
        document = script.document
        with pytest.raises(LedgerRemoved, match="account/a"):
            script.play(attempt(PROTOCOLS[protocol], deposit("m-2")))
        assert [type(effect) for effect in script.asked] == [Together, HasCompanions, SaveEntity]
        assert script.document == document


@BOTH
class TestDeletion:
    def test_it_leaves_a_tombstone_and_the_message_is_known(self, protocol: str) -> None:
        script = processed(protocol, deposit("m-1", amount=9), close("m-2"))
        assert script.document is not None
        assert set(script.document.value) == {"id", "owner", LEDGER}
        assert (script.ledger.deleted, script.ledger.version, script.body) == (True, 2, None)
        for message in (deposit("m-1", amount=9), close("m-2")):
            assert script.play(attempt(PROTOCOLS[protocol], message)).all(SaveBatch) == []

    def test_a_message_after_it_starts_a_new_life_with_the_same_numbering(self, protocol: str) -> None:
        script = processed(protocol, deposit("m-1", amount=9), close("m-2"), deposit("m-3", amount=1))
        assert script.body is not None
        assert script.body["total"] == 1
        assert (script.ledger.deleted, script.ledger.version) == (False, 3)
        assert script.ledger.sequences == (receipts(3),)
        assert numbers(script.published) == [1, 2, 3]


@pytest.mark.parametrize(
    ("ledger", "error"),
    [({"schema": 2}, NewerSchema), ({"schema": 1, "version": "x"}, DamagedDocument), (7, DamagedDocument)],
)
def test_a_ledger_that_cannot_be_trusted_stops_everything(ledger: Any, error: type[Exception]) -> None:
    script = Script(Json.of({**FOREIGN.value, LEDGER: ledger}))
    with pytest.raises(error, match="account/a"):
        script.play(attempt(Outbox(), deposit("m-1")))
    with pytest.raises(error, match="account/a"):
        script.play(sweep(ENTITY, Memory()))


def size_of(commit: SaveBatch) -> int:
    return commit.document.size + sum(Json.of(companion_document(ENTITY, item)).size for item in commit.create)


def notes(size: int) -> Handled:
    return Handled(Json.of({"id": "a", "owner": "a", "note": "x" * size}))


@BOTH
class TestSize:
    def test_a_document_that_would_be_too_large_fails_its_own_message(self, protocol: str, script: Script) -> None:
        bodies: list[Json | None] = []
        small = notes(10)

        def handle(before: Before, envelope: Envelope) -> Handled:
            bodies.append(before.body)
            return notes(MAX_DOCUMENT_BYTES) if envelope.id == "m-2" else small

        group = [deposit(f"m-{item}") for item in (1, 2, 3)]
        played = script.play(attempt(PROTOCOLS[protocol], *group, handle=handle))
        assert played.finished.processed == ("web/m-1", "web/m-3")
        assert bodies == [None, small.body, small.body]
        assert script.body is not None
        assert len(script.body["note"]) == 10
        alone = Script().play(attempt(PROTOCOLS[protocol], group[1], handle=handle))
        assert alone.kinds == [Together, Begin]
        for finished in (played.finished, alone.finished):
            ((key, error),) = finished.failed
            assert key == "web/m-2"
            assert isinstance(error, EntityTooLarge)
            assert "Message web/m-2 on entity account/a: the document would have" in str(error)

    def test_outputs_that_no_queue_takes_fail_their_own_message_only(self, protocol: str) -> None:
        group = (deposit("m-1", padding="x" * 1_100_000), deposit("m-2"))
        played = Script().play(attempt(PROTOCOLS[protocol], *group))
        ((key, error),) = played.finished.failed
        assert key == "web/m-1"
        assert isinstance(error, OutputTooLarge)
        assert played.finished.processed == ("web/m-2",)


@BOTH
class TestRoomInABatch:
    def test_a_message_without_room_in_its_group_is_tried_again_alone(self, protocol: str, script: Script) -> None:
        large = [deposit(f"m-{item}", **big(protocol)) for item in (1, 2, 3)]
        played = script.play(attempt(PROTOCOLS[protocol], *large))
        assert played.finished.processed == ("web/m-1", "web/m-2")
        ((key, error),) = played.finished.failed
        assert key == "web/m-3"
        assert isinstance(error, TryAgainLater)
        assert "no room" in str(error)
        assert script.play(attempt(PROTOCOLS[protocol], large[2])).finished.processed == ("web/m-3",)

    def test_what_no_batch_could_take_is_refused_for_good(self, protocol: str) -> None:
        there = 1_200_000 if protocol == "colocated" else 800_000
        script = Script(Json.of({"id": "a", "owner": "a", "note": "x" * there}))
        large = {"padding": "x" * 900_000} if protocol == "colocated" else {"note": "x" * 1_200_000}
        played = script.play(attempt(PROTOCOLS[protocol], deposit("m-1", **large)))
        ((_, error),) = played.finished.failed
        assert isinstance(error, EntityTooLarge)
        assert f"one batch takes {BATCH_BYTES}" in str(error)
        assert "account/a" in str(error)
        assert played.all(SaveBatch) == []

    def test_a_document_may_be_as_large_as_stated_and_no_larger(self, protocol: str) -> None:
        def of(size: int) -> Played:
            # A stream lets no state grow so large, but one that was there before it may stay as it is.
            script = Script(notes(size).body)
            return script.play(attempt(PROTOCOLS[protocol], deposit("m-1"), handle=lambda *_: notes(size)))

        room = MAX_DOCUMENT_BYTES - of(0).only(SaveBatch).document.size
        assert of(room).only(SaveBatch).document.size == MAX_DOCUMENT_BYTES
        assert len(of(room + 1).finished.failed) == 1

    def test_a_batch_may_be_as_large_as_stated_and_no_larger(self, protocol: str) -> None:
        def of(size: int) -> Played:
            output = Output("o-1", "receipts", Json.of("x" * size if protocol == "colocated" else ""))
            handled = replace(notes(800_000), outputs=(output,))
            message = deposit("m-1", padding="x" * size)
            return Script().play(attempt(PROTOCOLS[protocol], message, handle=lambda *_: handled))

        room = BATCH_BYTES - size_of(of(0).only(SaveBatch))
        assert size_of(of(room).only(SaveBatch)) == BATCH_BYTES
        ((_, error),) = of(room + 1).finished.failed
        assert f"would have {BATCH_BYTES + 1} bytes" in str(error)


def big(protocol: str) -> dict[str, str]:
    """What makes a message large: a stream keeps messages, not outputs."""
    return {"padding" if protocol == "colocated" else "note": "x" * 900_000}


OTHERS = [(own, other) for own in PROTOCOLS for other in PROTOCOLS if own != other]
CHORES: dict[str, Callable[[], Step[Any]]] = {
    "sweep": lambda: sweep(ENTITY, Memory()),
    "settle": lambda: settle(ENTITY, deposit("m-1"), "reason", ABSENT, Memory()),
    "clean_staged": lambda: clean_staged(ENTITY, ("tx-9",), ABSENT, Memory()),
}


def belonging_to(protocol: str) -> Json:
    more: dict[str, Any] = {
        "outbox": {"left": 1},
        "stream": {"snapshot_every": 3},
        "resequencer": {"receptions": (Reception("c", "s"),)},
    }
    return entity_document(ABSENT, Ledger(1, type="account", protocol=protocol, **more.get(protocol, {})))


def refused(protocol: str, step: Step[Any]) -> tuple[list[type], str]:
    """What a step asks of a document of this protocol, and what it says."""
    script = Script(belonging_to(protocol))
    with pytest.raises(ConfigurationError) as caught:
        script.play(step)
    assert script.document == belonging_to(protocol)
    return [type(effect) for effect in script.asked], str(caught.value)


@pytest.mark.parametrize(("own", "other"), OTHERS)
def test_a_strategy_refuses_what_another_one_processed_and_names_both(own: str, other: str) -> None:
    asked, text = refused(other, attempt(PROTOCOLS[own], deposit("m-1")))
    assert asked in ([LoadEntity], [Together])
    assert f"account/a was processed by the protocol {other!r}" in text
    assert f"configured for {own!r}" in text
    assert "Nothing was changed" in text
    assert "Go back to the former strategy" in text


@pytest.mark.parametrize("chore", CHORES)
@pytest.mark.parametrize("other", [protocol for protocol in PROTOCOLS if protocol != "outbox"])
def test_a_chore_of_the_outbox_refuses_what_another_one_processed(chore: str, other: str) -> None:
    asked, text = refused(other, CHORES[chore]())
    assert asked == [LoadEntity]
    assert repr(other) in text
    assert "'outbox'" in text


def copied_to(protocol: str, copy: EntityRef) -> Script:
    """A script about another document, which has a copy of the ledger of one that this protocol processed."""
    script = Script()
    script.play(attempt(PROTOCOLS[protocol], in_order(1)))
    assert script.document is not None
    ledger = script.document.value[LEDGER]
    return Script(Json.of({"id": copy.id, "owner": copy.partition[0], LEDGER: ledger}), copy)


@pytest.mark.parametrize("copy", [EntityRef("account", ("a",), "b"), EntityRef("account", ("b",), "a")], ids=str)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_ledger_that_was_copied_to_another_document_is_refused_and_says_what_it_is_of(
    protocol: str, copy: EntityRef
) -> None:
    script = copied_to(protocol, copy)
    document = script.document
    with pytest.raises(DamagedDocument, match=re.escape(f"a copy of the ledger of {ENTITY.key}")):
        script.play(attempt(PROTOCOLS[protocol], in_order(2), entity=copy))
    assert script.document == document


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_tombstone_of_a_fence_names_its_entity(protocol: str, script: Script) -> None:
    script.play(settle_by(protocol, unhandled(ENTITY, in_order(1), absent=ABSENT), "reason", Memory()))
    assert (script.ledger.deleted, script.ledger.entity) == (True, ENTITY.key)
