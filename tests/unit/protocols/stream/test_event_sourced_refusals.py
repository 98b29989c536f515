"""Event-sourced entities: what handlers and appliers cannot return, and histories that cannot be applied any more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from exactlyonce import ConfigurationError, Outbox, VersionStream
from exactlyonce.attempt import Memory
from exactlyonce.errors import DamagedDocument, HandlerFailed, NoStateReturned
from exactlyonce.handling.runner import Runner
from exactlyonce.protocols.stream.protocol import Point, point_before
from exactlyonce.protocols.stream.replay import replay
from exactlyonce.values.frozen_json import Json
from tests.asking import settle_by
from tests.samples import Account, Deposit, Deposited, breaking, deposit
from tests.samples import accounts as plain_accounts
from tests.unit.protocols.sourcing import (
    Noted,
    Paid,
    accounts,
    answering,
    attempt,
    declared,
    entries,
    noted,
    played,
    work,
)
from tests.unit.script import ENTITY, ORDERED, Played, Script

TYPE = accounts()

WRONG: dict[str, tuple[Any, str]] = {
    "a state": (Account(7), "The handler returned an Account.*return a list of events"),
    "a dictionary": ({"amount": 1}, "returned a dict"),
    "a string": ("paid", "returned a str"),
    "one event": (Paid(1), "returned a Paid"),
    "a list of states": ([Account(7)], "has an item that is not an event: Account is not a message type"),
    "a list of numbers": ([7], "int is not a message type"),
    "an event of wrong values": ([Paid("much")], "The receiver of this Paid would read something else"),  # type: ignore[arg-type]
    "an event that nothing applies": (
        [Deposited(1, "r")],
        "has no applier of events of type 'account.deposited'.*paid",
    ),
}


class TestWhatCannotBe:
    @pytest.mark.parametrize("case", WRONG)
    def test_an_error_says_what_to_return_instead_of_no_events(self, case: str) -> None:
        result, words = WRONG[case]
        script = played(deposit("m-1"))
        done = script.play(attempt(answering(result), deposit("m-2")))
        require_failed(done, "web/m-2", HandlerFailed, words)
        assert script.ledger.version == 1

    def test_an_error_says_that_the_list_of_events_may_be_empty(self) -> None:
        done = Script().play(attempt(answering(None), deposit("m-1")))
        require_failed(done, "web/m-1", NoStateReturned, "a list of events, which may be empty")

    def test_a_handler_that_raises_fails_its_message_alone(self) -> None:
        script = Script()
        done = script.play(attempt(TYPE, deposit("m-1"), breaking("m-2"), deposit("m-3")))
        require_failed(done, "web/m-2", HandlerFailed, "The handler raised RuntimeError")
        assert done.finished.processed == ("web/m-1", "web/m-3")

    @pytest.mark.parametrize(
        ("applier", "words"),
        [
            (lambda state, event: 1 // 0, "Applying an event of type 'account.paid' raised ZeroDivisionError"),
            (
                lambda state, event: None,
                "The applier of events of type 'account.paid' returned None.*new Account",
            ),
            (lambda state, event: 7, "returned an int"),
            (lambda state, event: Account("seven"), "would be read as something else"),  # type: ignore[arg-type]
            (lambda state, event: Account(note=b"\xff"), "cannot be stored|read again as something"),  # type: ignore[arg-type]
        ],
    )
    def test_what_applies_an_event_has_to_return_a_state(self, applier: Callable[..., Any], words: str) -> None:
        type = answering([Paid(1), Paid(2)])
        type._appliers["account.paid"] = (Paid, applier)
        script = Script()
        require_failed(script.play(attempt(type, deposit("m-1"))), "web/m-1", HandlerFailed, words)
        assert script.document is None

    def test_what_applies_an_event_is_a_plain_function_of_state_and_event(self) -> None:
        async def later(state: Account, event: Paid) -> Account:
            return state

        with pytest.raises(ConfigurationError, match=r"The applier .*later is async"):
            declared().applies(Paid)(later)  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError, match=r"has to take \(state, event\)"):
            declared().applies(Noted)(lambda state: state)  # type: ignore[arg-type,misc]

    def test_an_event_is_a_message_type_that_is_applied_in_one_way(self) -> None:
        type = accounts()
        with pytest.raises(ConfigurationError, match=r"'account' applies events of type 'account\.noted' twice"):
            type.applies(Noted)(noted)
        with pytest.raises(ConfigurationError, match="Account is not a message type"):
            cast("Any", type).applies(Account)(lambda state, event: state)

    @pytest.mark.parametrize(("began", "goes_on"), [(TYPE, plain_accounts()), (plain_accounts(), TYPE)])
    def test_a_stream_begins_with_events_or_without_and_stays_so(self, began: Any, goes_on: Any) -> None:
        began, goes_on = began.using(VersionStream(3)), goes_on.using(VersionStream(3))
        script = played(deposit("m-1"), type=began)
        writes, sent = script.writes, len(script.published)
        for message in (deposit("m-1"), deposit("m-2")):
            with pytest.raises(ConfigurationError, match=r"The stream of entity account/a holds.*Nothing was changed"):
                script.play(attempt(goes_on, message))
        with pytest.raises(ConfigurationError, match="holds"):
            script.play(replay(work(goes_on), (1, 1), Memory()))
        with pytest.raises(ConfigurationError, match="Go back to the handlers it had"):
            script.play(settle_by("stream", work(goes_on, deposit("m-1")), "its handler raised", Memory()))
        assert (script.writes, len(script.published)) == (writes, sent)

    def test_where_events_are_not_kept_they_may_come_and_go(self) -> None:
        script = played(deposit("m-1", amount=5), type=accounts(Outbox()))
        script.play(attempt(plain_accounts(), deposit("m-2", amount=3)))
        script.play(attempt(accounts(Outbox()), deposit("m-3", amount=1)))
        assert script.body == {"id": "a", "owner": "a", "total": 9, "history": [5, 3, 1], "note": ""}


def require_failed(done: Played, message: str, kind: type[Exception], words: str) -> None:
    """One message failed, by an error that names it and its entity."""
    ((key, error),) = done.finished.failed
    assert key == message
    with pytest.raises(kind, match=rf"Message {message} on entity account/a: .*({words})"):
        raise error


class TestOldEvents:
    """An account of three versions, and appliers that have changed since."""

    script = played(deposit("m-1", amount=5), deposit("m-2", padding="x"), deposit("m-3"))

    @pytest.mark.parametrize(
        ("changes", "words", "cause"),
        [
            ({"account.paid": (Paid, lambda state, event: 1 // 0)}, "raised ZeroDivisionError", ZeroDivisionError),
            ({"account.paid": (Deposit, noted)}, "does not fit Deposit: account: Field required", HandlerFailed),
            (
                {"account.noted": (Noted, noted), "account.paid": None},
                "has no applier of events of type 'account.paid'",
                HandlerFailed,
            ),
        ],
    )
    def test_one_that_cannot_be_applied_any_more_fails_only_the_duplicates_that_need_it(
        self, changes: dict[str, Any], words: str, cause: type[Exception]
    ) -> None:
        type = accounts()
        type._appliers.update(changes)
        for name in [name for name, item in type._appliers.items() if item is None]:
            del type._appliers[name]
        script = self.script
        sent = list(script.published)
        done = script.play(
            attempt(type, deposit("m-1", amount=5), deposit("m-3"), handle=Runner(TYPE, ENTITY, ORDERED))
        )
        ((key, error),) = done.finished.failed
        assert (key, HandlerFailed) == ("web/m-3", error.__class__)
        assert f"Message {key} on entity account/a cannot be handled again on version 2" in str(error)
        assert "events of version 1" in str(error)
        assert words in str(error)
        assert error.__cause__.__class__ is cause
        assert [output.id for output in script.published[len(sent) :]] == [sent[0].id]

    def test_one_is_known_by_its_former_name(self) -> None:
        stream = entries(self.script)
        assert stream[0].events is not None
        renamed = replace(stream[0], events=(replace(stream[0].events[0], type="account.given"),))
        before = point_before(work(TYPE), 2, (renamed, *stream[1:]), self.script.ledger, Point(None))
        assert before.body is not None
        assert before.body.value["total"] == 5

    @pytest.mark.parametrize(
        ("version", "changes", "words"),
        [
            (1, {"whole": False}, "Version 1 .* should hold a whole state"),
            (1, {"before": None}, "Version 1 .* should hold a whole state"),
            (2, {"whole": True, "before": None}, "Version 2 .* should hold a whole state"),
            (1, {"before": Json("[]")}, "Version 1 .* holds a whole state that cannot be read"),
            (2, {"events": None}, "Version 2 .* has no events"),
        ],
    )
    def test_an_entry_that_does_not_lead_on_is_damage(self, version: int, changes: dict[str, Any], words: str) -> None:
        stream = [replace(entry, **changes) if entry.version == version else entry for entry in entries(self.script)]
        with pytest.raises(DamagedDocument, match=words):
            point_before(work(TYPE), 3, tuple(stream), self.script.ledger, Point(None))
