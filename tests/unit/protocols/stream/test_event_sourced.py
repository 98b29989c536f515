"""Event-sourced entities: handlers return events, the state is made of them, and every earlier state comes back; what cannot be
returned or applied is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactlyonce import Colocated, ConfigurationError, Envelope, Outbox, VersionStream
from exactlyonce.effects.attempt import Memory
from exactlyonce.effects.companions import FindEntries
from exactlyonce.effects.effect import Together
from exactlyonce.effects.entity import Publish
from exactlyonce.errors import DamagedDocument, HandlerFailed, NoStateReturned
from exactlyonce.handling.runner import Runner
from exactlyonce.protocols.stream.protocol import Point, point_before
from exactlyonce.protocols.stream.replay import Missing, Replayed, replay
from exactlyonce.records.companions import Event
from exactlyonce.values.frozen_json import Json
from tests.asking import settle_by
from tests.samples import Account, Deposit, Deposited, breaking, close, deposit
from tests.samples import accounts as plain_accounts
from tests.unit.protocols.sourcing import (
    Noted,
    Paid,
    Remembering,
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
HISTORY = (
    deposit("m-1", amount=5, answers=2),
    deposit("m-2", amount=0),
    deposit("m-3", amount=3, padding="note"),
    close("m-4"),
    deposit("m-5", amount=2, answers=0),
    deposit("m-6", amount=1),
    close("m-7"),
    close("m-8"),
    deposit("m-9", amount=4),
)


def replayed(script: Script, first: int, last: int, missing: Missing | None = None) -> list[Played]:
    """All parts of a replay."""
    parts, following = [], first
    while following:
        parts.append(script.play(replay(work(TYPE), (following, last), Memory(), missing)))
        assert isinstance(parts[-1].result, Replayed)
        following = parts[-1].result.following or 0
    return parts


class TestWhatIsKept:
    def test_the_state_is_made_of_the_events(self) -> None:
        script = played(deposit("m-1", amount=5), deposit("m-2", amount=3, padding="thanks"))
        assert script.body == {"id": "a", "owner": "a", "total": 8, "history": [5, 3], "note": "thanks"}

    def test_an_entry_holds_the_events_and_no_way_back(self) -> None:
        entry = entries(played(deposit("m-1", amount=5), deposit("m-2", amount=3, padding="thanks")))[1]
        assert entry.events == (
            Event("account.paid", Json.of({"amount": 3})),
            Event("account.noted", Json.of({"text": "thanks"})),
        )
        assert (entry.before, entry.whole) == (None, False)

    def test_an_account_that_was_there_before_the_library_is_where_its_stream_begins(self) -> None:
        old = {"id": "a", "owner": "a", "total": 40, "history": [], "note": "", "colour": "blue"}
        script, first, again = Script(Json.of(old)), Remembering(TYPE), Remembering(TYPE)
        messages = [deposit(f"m-{number}", amount=2) for number in range(5)]
        for message in messages:
            script.play(attempt(TYPE, message, handle=first))
        assert script.body == {**old, "total": 50, "history": [2] * 5}
        script.play(attempt(TYPE, *messages, handle=again))
        assert again.given == first.given
        assert first.given[0].body == Json.of(old)

    @pytest.mark.parametrize("strategy", [Outbox(), Colocated()])
    def test_without_a_stream_the_state_is_made_of_events_that_nobody_keeps(self, strategy: Any) -> None:
        type = accounts(strategy)
        script = played(*HISTORY, type=type)
        assert script.body == {"id": "a", "owner": "a", "total": 4, "history": [4], "note": ""}
        stored = [version.document for partition in script.store.entities.values() for version in partition.log]
        assert not any("account.paid" in document.text for document in stored if document is not None)
        assert script.play(attempt(type, *HISTORY)).finished.processed == ()


class TestADuplicate:
    def test_reading_begins_at_a_whole_state(self) -> None:
        script = played(*HISTORY)
        done = script.play(attempt(TYPE, HISTORY[5], HISTORY[6]))
        assert done.kinds == [Together, FindEntries, Publish]
        assert done.only(FindEntries).ranges == ((4, 6), (7, 7))

    def test_what_was_sent_is_sent_again_on_request_an_interval_at_a_time(self) -> None:
        script = played(*HISTORY)
        sent = list(script.published)
        script.published.clear()
        parts = replayed(script, 2, 8)
        assert [part.only(FindEntries).ranges for part in parts] == [((1, 3),), ((4, 6),), ((7, 9),)]
        assert script.published == sent[2:-1]


DEPOSITS = st.builds(
    lambda amount, answers, padding: ("deposit", amount, answers, padding),
    st.integers(-3, 3),
    st.integers(0, 2),
    st.sampled_from(["", "x", "ü"]),
)
HISTORIES = st.lists(DEPOSITS | st.sampled_from([("close",), ("break",)]), min_size=1, max_size=14)


def message_of(number: int, kind: str, *details: Any) -> Envelope:
    id = f"m-{number}"
    if kind == "deposit":
        return deposit(id, **dict(zip(("amount", "answers", "padding"), details, strict=True)))
    return close(id) if kind == "close" else breaking(id)


@given(HISTORIES, st.integers(1, 5), st.randoms(use_true_random=False))
def test_every_earlier_state_is_rebuilt_exactly(history: list[Any], every: int, random: Any) -> None:
    type, script = accounts(VersionStream(every)), Script()
    first = Remembering(type)
    waiting = [message_of(number, *item) for number, item in enumerate(history)]
    messages = list(waiting)
    processed: list[str] = []
    while waiting:
        size = random.randint(1, 4)
        processed += script.play(attempt(type, *waiting[:size], handle=first)).finished.processed
        waiting = waiting[size:]
    handled = [item for item, message in zip(first.points, messages, strict=True) if f"web/{message.id}" in processed]
    stream = entries(script)
    for version, point in enumerate(handled, 1):
        assert point_before(work(type), version, stream, script.ledger, Point(None)) == point
    sent = {output.id: output for output in script.published}
    script.published.clear()
    script.play(attempt(type, *random.sample(messages, len(messages))))
    assert {output.id: output for output in script.published} == sent


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
    def test_an_applier_has_to_return_a_state(self, applier: Callable[..., Any], words: str) -> None:
        type = answering([Paid(1), Paid(2)])
        type._appliers["account.paid"] = (Paid, applier)
        script = Script()
        require_failed(script.play(attempt(type, deposit("m-1"))), "web/m-1", HandlerFailed, words)
        assert script.document is None

    def test_an_applier_is_a_plain_function_of_state_and_event(self) -> None:
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
