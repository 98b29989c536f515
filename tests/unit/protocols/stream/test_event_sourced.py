"""Event-sourced entities: handlers return what happened, the state is made of it, and every earlier state comes back."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactlyonce import (
    Colocated,
    Envelope,
    Outbox,
    VersionStream,
)
from exactlyonce.attempt import Memory
from exactlyonce.effects.companions import FindEntries, SaveBatch
from exactlyonce.effects.effect import Begin, Together
from exactlyonce.effects.entity import Publish
from exactlyonce.protocols.stream.protocol import Point, point_before
from exactlyonce.protocols.stream.replay import Missing, Replayed, replay
from exactlyonce.records.companions import Event
from exactlyonce.values.frozen_json import Json
from tests.samples import breaking, close, deposit
from tests.unit.protocols.sourcing import Remembering, accounts, attempt, entries, played, work
from tests.unit.script import AT, CHANNEL, Played, Script, numbers

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

    def test_now_and_then_it_holds_the_whole_state_before_them(self) -> None:
        stream = entries(played(*(deposit(f"m-{number}", amount=number) for number in range(1, 9))))
        assert [entry.version for entry in stream if entry.whole] == [1, 4, 7]
        assert [entry.version for entry in stream if entry.before is not None] == [1, 4, 7]
        assert stream[0].before == Json.of({"body": None})
        assert stream[3].before is not None
        assert stream[3].before.value["body"]["total"] == 1 + 2 + 3

    def test_a_message_after_which_nothing_happened_leaves_an_entry_as_well(self) -> None:
        script = played(deposit("m-1", amount=0))
        assert [entry.events for entry in entries(script)] == [()]
        assert script.body == {"id": "a", "owner": "a", "total": 0, "history": [], "note": ""}

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
    @pytest.mark.parametrize("together", [1, 2, len(HISTORY)])
    def test_it_is_handled_on_the_state_and_time_of_its_first_time_and_sends_its_numbers(self, together: int) -> None:
        script, first, again = Script(), Remembering(TYPE), Remembering(TYPE)
        for start in range(0, len(HISTORY), together):
            script.play(attempt(TYPE, *HISTORY[start : start + together], handle=first))
        sent = list(script.published)
        assert numbers(sent) == list(range(1, len(sent) + 1))
        script.at = AT + timedelta(days=4)
        for message in HISTORY:
            script.play(attempt(TYPE, message, handle=again))
        assert again.given == first.given
        assert [before.body is None for before in first.given] == [at in (0, 4, 7, 8) for at in range(len(HISTORY))]
        assert script.published == sent * 2
        assert script.ledger.version == len(HISTORY)

    def test_what_it_reads_begins_at_a_whole_state(self) -> None:
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

    def test_what_a_read_model_lacks_is_sent_again_alone(self) -> None:
        script = played(*HISTORY)
        sent = list(script.published)
        script.published.clear()
        replayed(script, 1, 9, Missing(CHANNEL, 4, 5))
        assert script.published == sent[3:5]


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


def test_the_attempt_that_handles_again_begins_nothing() -> None:
    done = played(*HISTORY).play(attempt(TYPE, *HISTORY))
    assert Begin not in done.kinds
    assert SaveBatch not in done.kinds
