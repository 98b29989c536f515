"""What cannot be processed goes the host's way to the poison queue, says why, changes nothing, and holds nobody up."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest

from exactlyonce import Envelope
from exactlyonce.errors import (
    DamagedDocument,
    HandlerFailed,
    InvalidMessage,
    LedgerRemoved,
    MalformedMessage,
    MessageFromTheFuture,
    NewerSchema,
    OutputTooLarge,
    TooOldToJudge,
    UndatedMessage,
    UnknownMessageType,
)
from exactlyonce.protocols.outbox.draft import MOST_MARKS
from exactlyonce.values.frozen_json import Json
from function_host import Point
from tests.acceptance.conftest import STRATEGIES, Bank, Plumbing, every_strategy
from tests.samples import breaking, deposit

pytestmark = pytest.mark.acceptance

SECRET = "the-body-must-not-be-logged"


NOW = datetime.now(timezone.utc)


def wire(envelope: Envelope) -> bytes:
    """The message as it is in a queue of today."""
    return replace(envelope, time=NOW).to_json().text.encode()


def envelope_with(**changes: Any) -> bytes:
    """An envelope, with some attributes changed; None removes one."""
    attributes = {**json.loads(wire(deposit("m-bad", note=SECRET))), **changes}
    return json.dumps({name: value for name, value in attributes.items() if value is not None}).encode()


BAD_MESSAGES: dict[str, tuple[bytes, type[Exception], str]] = {
    "not JSON": (f"{{{SECRET}".encode(), MalformedMessage, "Queue message "),
    "not an envelope": (json.dumps({"account": "a", "note": SECRET}).encode(), MalformedMessage, "Queue message "),
    "not an object": (json.dumps([SECRET]).encode(), MalformedMessage, "Queue message "),
    "no id": (envelope_with(id=None), MalformedMessage, "it has no id"),
    "no source": (envelope_with(source=None), MalformedMessage, "it has no source"),
    "too long an id": (envelope_with(id="i" * 2000), MalformedMessage, "at most 1024 are allowed"),
    "unknown type": (envelope_with(type="account.rob"), UnknownMessageType, "Message web/m-bad"),
    "failing validation": (envelope_with(data={"account": "a", "amount": SECRET}), InvalidMessage, "Message web/m-bad"),
    "no time": (envelope_with(time=None), UndatedMessage, "Message web/m-bad on entity account/a"),
    "a time long ago": (
        envelope_with(time="2020-01-01T00:00:00Z"),
        TooOldToJudge,
        "Message web/m-bad on entity account/a",
    ),
    "a time ahead": (
        envelope_with(time="2999-01-01T00:00:00Z"),
        MessageFromTheFuture,
        "Message web/m-bad on entity account/a",
    ),
    "a key that cannot be an id": (envelope_with(data={"account": "a/b"}), InvalidMessage, "Message web/m-bad"),
    "a handler that raises": (wire(breaking("m-bad")), HandlerFailed, "Message web/m-bad on entity account/a"),
    "an output over its queue's limit": (
        wire(deposit("m-bad", padding="x", repeat=50_000)),
        OutputTooLarge,
        "Message web/m-bad on entity account/a",
    ),
    "outputs over 2 MB together": (
        wire(deposit("m-bad", padding="x", repeat=40_000, answers=60)),
        OutputTooLarge,
        "Message web/m-bad on entity account/a",
    ),
}


HANDLED = ("a handler that raises", "an output over its queue's limit", "outputs over 2 MB together")
"""Those that come as far as a handler, so that it may matter who called it."""


@pytest.mark.parametrize(
    ("case", "strategy"),
    [
        pytest.param(case, strategy, id=f"{case}, {name}")
        for name, strategy in STRATEGIES.items()
        for case in (BAD_MESSAGES if name == "outbox" else HANDLED)
    ],
)
async def test_a_message_that_cannot_be_processed_is_put_aside_and_the_next_one_processed(
    case: str, bank: Bank, caplog: pytest.LogCaptureFixture
) -> None:
    body, error, words = BAD_MESSAGES[case]
    await bank.put(body, wire(deposit("m-good", amount=5)))
    await bank.passed.until(1, Point.COPIED)
    await bank.passed.until(1)
    assert await bank.contents("-poison") == [body]
    state = await bank.state("a")
    assert (state.total, state.history) == (5, [5])
    assert len(await bank.contents("-receipts")) == 1
    assert [document["total"] for document in bank.documents()] == [5]
    assert_logged(caplog, error, words)


DAMAGE: dict[str, tuple[dict[str, Any], type[Exception]]] = {
    "a ledger that is no object": ({"_ledger": "gone"}, DamagedDocument),
    "a ledger with a wrong property": ({"_ledger": {"schema": 1, "version": "one"}}, DamagedDocument),
    "a ledger of a newer version": ({"_ledger": {"schema": 2, "version": 1, "riddles": []}}, NewerSchema),
    "a state that does not fit": ({"total": "a lot"}, DamagedDocument),
    "a property with which it would expire": ({"ttl": 2_592_000}, DamagedDocument),
}


@pytest.mark.parametrize("strategy", every_strategy())
@pytest.mark.parametrize("case", DAMAGE)
async def test_a_damaged_entity_is_left_alone_and_the_others_are_processed(
    case: str, bank: Bank, plumbing: Plumbing, caplog: pytest.LogCaptureFixture
) -> None:
    changes, error = DAMAGE[case]
    damaged = await plumbing.accounts.create_item({"id": "a", "owner": "a", "note": SECRET, **changes})
    await bank.put(wire(deposit("m-1", "a")), wire(deposit("m-2", "b")))
    await bank.passed.until(1, Point.COPIED)
    await bank.passed.until(1)
    assert await bank.contents("-poison") == [wire(deposit("m-1", "a"))]
    assert dict(await plumbing.accounts.read_item("a", "a")) == dict(damaged)
    assert (await bank.state("b")).history
    assert_logged(caplog, error, "web/m-1")
    assert_logged(caplog, error, "account/a")


@pytest.mark.parametrize("strategy", every_strategy())
async def test_an_entity_whose_ledger_was_removed_is_left_alone(
    bank: Bank, plumbing: Plumbing, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(MOST_MARKS + 2):  # The last one cuts a page.
        await bank.put(wire(deposit(f"m-{number}")))
        await bank.passed.until(number + 1)
    document = await plumbing.accounts.read_item("a", "a")
    await plumbing.accounts.replace_item("a", {name: document[name] for name in document if name != "_ledger"})
    await bank.redeploy(bank.entity.strategy)  # A process that has seen the ledger knows the copy.
    await bank.put(wire(deposit("m-0")))
    await bank.passed.until(1, Point.COPIED)
    assert_logged(caplog, LedgerRemoved, "web/m-0")
    assert (await plumbing.accounts.read_item("a", "a"))["total"] == MOST_MARKS + 2


@pytest.mark.parametrize("strategy", every_strategy())
async def test_an_entity_that_was_there_before_the_library_is_adopted(bank: Bank, plumbing: Plumbing) -> None:
    await plumbing.accounts.create_item({"id": "a", "owner": "a", "total": 40, "colour": "blue"})
    await bank.put(wire(deposit("m-1", amount=2)))
    await bank.passed.until(1)
    document = await plumbing.accounts.read_item("a", "a")
    assert (document["total"], document["colour"], document["_ledger"]["version"]) == (42, "blue", 1)


@pytest.mark.parametrize("strategy", every_strategy())
async def test_foreign_bodies_become_envelopes_by_an_adapter(bank: Bank) -> None:
    order = json.dumps({"order": 7, "account": "a", "amount": 3, "at": datetime.now(timezone.utc).isoformat()}).encode()
    await bank.put(order, order, queue="-plain")
    await bank.passed.until(2)
    assert (await bank.state("a")).history == [3]


@pytest.mark.parametrize("body", [b"{", b"[]", b"{}", b'{"order": 1'])
async def test_a_foreign_body_without_an_id_is_put_aside(
    body: bytes, bank: Bank, caplog: pytest.LogCaptureFixture
) -> None:
    await bank.put(body, queue="-plain")
    await bank.passed.until(1, Point.COPIED)
    assert await bank.contents("-plain-poison") == [body]
    assert_logged(caplog, MalformedMessage, "Queue message ")


def assert_logged(caplog: pytest.LogCaptureFixture, error: type[Exception], words: str) -> None:
    """The log names the error's class, says the words, and holds no body."""
    logged = [record for record in caplog.records if record.exc_info and isinstance(record.exc_info[1], error)]
    assert logged, [record.getMessage() for record in caplog.records]
    formatted = [logging.Formatter().format(record) for record in logged]
    assert any(words in text for text in formatted), formatted
    assert not any(SECRET in text for text in formatted)
    assert Json.of(SECRET).text not in caplog.text
