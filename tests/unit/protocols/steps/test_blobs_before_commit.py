"""Every strategy writes the blobs of its attempt before the commit that refers to them, and only those."""

from __future__ import annotations

from typing import Any

import pytest

from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.effect import UNKNOWN
from exactlyonce.effects.entity import Publish, SaveEntity
from exactlyonce.effects.library import WriteOnce
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from tests.samples import accounts, breaking, deposit
from tests.unit.bookkeeping import tx
from tests.unit.protocols.gallery import PROTOCOLS
from tests.unit.script import ENTITY, Played, Script, attempt

BASE = "https://account.blob.core.windows.net/blobs"
HANDLE = Runner(accounts(), ENTITY, Routes({"receipts": 500}, blobs=BASE))
PROTOCOL = pytest.mark.parametrize("protocol", PROTOCOLS)


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
def test_a_duplicate_writes_nothing_and_sends_what_was_sent(protocol: str) -> None:
    world = Script()
    process(world, protocol, large(1))
    again = process(world, protocol, large(1))
    assert again.finished.failed == ()
    assert again.all(WriteOnce) == []
    assert len({output.envelope.text for output in world.published}) == 1


@PROTOCOL
def test_an_attempt_without_blobs_asks_for_none(protocol: str) -> None:
    assert process(Script(), protocol, deposit("m-1")).all(WriteOnce) == []


@pytest.mark.parametrize("protocol", ["colocated", "stream"])
def test_blobs_of_a_group_are_written_together_and_those_of_what_failed_not_at_all(protocol: str) -> None:
    played = process(Script(), protocol, large(1), breaking("m-2"), large(3))
    assert [blob.author.message for blob in played.only(WriteOnce).blobs if blob.author] == ["web/m-1", "web/m-3"]


@PROTOCOL
def test_the_blobs_of_a_group_are_written_together(protocol: str) -> None:
    played = Script().play(attempt(PROTOCOLS[protocol], large(1), large(2), handle=HANDLE))
    assert [blob.author.message for blob in played.only(WriteOnce).blobs if blob.author] == ["web/m-1", "web/m-2"]
