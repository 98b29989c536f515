"""The version stream: what an entry keeps, and how a duplicate is handled again on the state it was first handled on."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactlyonce import ConfigurationError
from exactlyonce.attempt import Before, Finished, Handled, Memory
from exactlyonce.effects.companions import FindEntries, FoundCompanions, LoadCompanions, SaveBatch
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Begin, NoAnswer, Together
from exactlyonce.effects.entity import LoadEntity, Publish
from exactlyonce.errors import DamagedDocument, ExactlyOnceError, HandlerFailed, NonDeterministicHandler
from exactlyonce.handling.runner import Runner
from exactlyonce.protocols.stream.protocol import VersionStream
from exactlyonce.records.companions import StreamEntry, entry_id
from exactlyonce.records.outbox import Sequence, digest
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json
from tests.samples import accounts, breaking, close, deposit
from tests.unit.script import AT, ENTITY, ORDERED, Script, attempt, numbers

STREAM = VersionStream(snapshot_every=3)
RUNNER = Runner(accounts(), ENTITY, ORDERED)
MONDAY = AT + timedelta(days=4)


def entries(script: Script) -> list[StreamEntry]:
    return [companion for companion in script.companions if isinstance(companion, StreamEntry)]


def played(*messages: Envelope, strategy: VersionStream = STREAM) -> Script:
    """An entity that processed these messages, one after the other."""
    script = Script()
    for message in messages:
        script.play(attempt(strategy, message))
    return script


def deposits(count: int) -> list[Envelope]:
    return [deposit(f"m-{number}", amount=number) for number in range(1, count + 1)]


class Remembering:
    """A handler that keeps what it was given. The numbers given out are no matter where a message is handled again."""

    def __init__(self) -> None:
        self.given: list[Before] = []

    def __call__(self, before: Before, envelope: Envelope) -> Handled:
        self.given.append(replace(before, sequences=()))
        return RUNNER(before, envelope)


class TestTheEntry:
    def test_it_keeps_message_time_and_digest_but_no_outputs(self) -> None:
        script = Script()
        done = script.play(attempt(STREAM, deposit("m-1", answers=2)))
        outputs = done.only(Publish).outputs
        (entry,) = entries(script)
        assert entry.envelope == deposit("m-1", answers=2).to_json()
        assert (entry.message, entry.version, entry.tx, entry.at) == ("web/m-1", 1, "tx-1", AT)
        assert entry.outputs == tuple(output.ref for output in outputs)
        assert entry.digest == digest(outputs)

    def test_its_first_one_starts_from_nothing(self) -> None:
        (entry,) = entries(played(deposit("m-1")))
        assert entry.before == Json.of({"body": None})
        assert entry.whole

    def test_now_and_then_it_holds_the_whole_state(self) -> None:
        padding = Json.of({"id": "a", "owner": "a", "total": 0, "history": [], "note": "x" * 500})
        script = Script(padding)
        for message in deposits(7):
            script.play(attempt(STREAM, message))
        assert [entry.version for entry in entries(script) if entry.whole] == [3, 6]

    def test_a_stream_keeps_the_distance_of_whole_states_that_it_began_with(self) -> None:
        script = played(deposit("m-1"))
        assert script.ledger.snapshot_every == 3
        script.play(attempt(VersionStream(snapshot_every=50), deposit("m-2")))
        assert script.ledger.snapshot_every == 3

    @pytest.mark.parametrize("every", [0, -1, 101])
    def test_whole_states_are_not_too_far_apart(self, every: int) -> None:
        with pytest.raises(ConfigurationError, match="from 1 to 100"):
            VersionStream(snapshot_every=every)
        assert VersionStream(100).snapshot_every == 100


class TestADuplicate:
    def test_it_is_handled_on_the_state_and_time_of_its_first_time_and_sends_its_numbers(self) -> None:
        first, again = Remembering(), Remembering()
        script = Script()
        for message in deposits(8):
            script.play(attempt(STREAM, message, handle=first))
        published = list(script.published)
        script.at = MONDAY
        for message in deposits(8):
            done = script.play(attempt(STREAM, message, handle=again))
            assert done.kinds == [Together, FindEntries, Publish]
            assert done.finished.processed == ()
        assert again.given == first.given
        assert script.published == published * 2
        assert script.ledger.version == 8

    def test_what_leads_back_is_read_at_the_token_of_the_entity(self) -> None:
        script = played(*deposits(8))
        done = script.play(attempt(STREAM, deposits(8)[0]))
        assert done.only(FindEntries) == FindEntries(ENTITY, ((1, 3),), "0:-1#16")
        done = script.play(attempt(STREAM, deposits(8)[6], deposits(8)[1]))
        assert done.only(FindEntries).ranges == ((7, 8), (2, 3))

    def test_one_that_sends_nothing_publishes_nothing(self) -> None:
        script = played(deposit("m-1", answers=0))
        done = script.play(attempt(STREAM, deposit("m-1", answers=0)))
        assert done.kinds == [Together, FindEntries]
        contents = (("web/m-1", deposit("m-1", answers=0).content),)
        assert done.result == Finished(Memory(entity_token="0:-1#2"), contents=contents)

    def test_in_a_group_it_is_published_before_the_others_are_handled(self) -> None:
        script = played(*deposits(2))
        group = (deposit("m-9"), deposits(2)[0], breaking("m-8"), deposits(2)[1], deposit("m-7"))
        done = script.play(attempt(STREAM, *group))
        assert done.kinds == [Together, FindEntries, Publish, Begin, SaveBatch, Publish]
        assert done.only(Begin).count == 3
        assert done.finished.processed == ("web/m-9", "web/m-7")
        assert [key for key, _ in done.finished.failed] == ["web/m-8"]
        assert numbers(script.published) == [1, 2, 1, 2, 3, 4]

    def test_it_goes_back_over_a_deletion(self) -> None:
        first, again = Remembering(), Remembering()
        messages = (deposit("m-1", amount=5), close("m-2"), deposit("m-3"), deposit("m-4"))
        script = Script()
        script.play(attempt(STREAM, *messages, handle=first))
        assert [before.body is None for before in first.given] == [True, False, True, False]
        script.play(attempt(STREAM, *messages, handle=again))
        assert again.given == first.given

    def test_it_goes_back_over_a_deletion_whatever_numbers_it_left(self) -> None:
        sequences = tuple(Sequence("receipts", f"reader/r-{number}", "c", 1) for number in range(9))
        given: list[Json | None] = []

        def handle(before: Before, envelope: Envelope) -> Handled:
            given.append(before.body)
            deleted = envelope.id == "m-2"
            body = {"id": ENTITY.id, "note": "x" * 200, "total": 0 if deleted else 5}
            return Handled(Json.of(body), (), deleted=deleted, sequences=sequences)

        script = Script()
        script.play(attempt(STREAM, deposit("m-1"), deposit("m-2"), handle=handle))
        assert entries(script)[1].whole, "nothing is left that a patch could change"
        script.play(attempt(STREAM, deposit("m-2"), handle=handle))
        assert given[2] == given[1]

    @pytest.mark.parametrize("reply", [BEHIND, UNKNOWN])
    def test_without_its_stream_nothing_is_handled(self, reply: NoAnswer) -> None:
        script = played(deposit("m-1"))
        done = script.play(attempt(STREAM, deposit("m-1"), deposit("m-2")), {FindEntries: reply})
        assert done.kinds == [Together, FindEntries]
        assert done.again.memory.entity_token == "0:-1#2"
        assert script.ledger.version == 1

    def test_an_entity_seen_in_an_older_view_than_its_stream_is_looked_at_again(self) -> None:
        script = played(deposit("m-1"))
        stale = script.usual(LoadEntity(ENTITY))
        script.play(attempt(STREAM, deposit("m-2")))
        done = script.play(attempt(STREAM, deposit("m-2")), {LoadEntity: stale})
        assert done.kinds == [Together]
        assert "older view" in done.again.reason
        assert done.again.memory.entity_token == stale.token

    def test_a_stream_seen_in_an_older_view_is_caught_by_the_commit(self) -> None:
        script = played(deposit("m-1"))
        nothing = FoundCompanions(())
        done = script.play(attempt(STREAM, deposit("m-1")), {LoadCompanions: nothing})
        assert done.kinds == [Together, Begin, SaveBatch]
        assert done.again.reason
        assert numbers(script.published) == [1]

    def test_a_stream_that_lost_an_entry_stops_everything(self) -> None:
        script = played(*deposits(3))
        wanted = script.usual(LoadCompanions(ENTITY, (entry_id(ENTITY, "web/m-1"),)))
        with pytest.raises(DamagedDocument, match="account/a has not every version from 1 to 3"):
            script.play(attempt(STREAM, deposits(1)[0], deposit("m-9")), {FindEntries: wanted})
        assert script.ledger.version == 3


class TestAHandlerThatChanged:
    def test_what_it_sends_now_is_not_published_but_that_of_others_is(self) -> None:
        script = played(*deposits(3))
        sent = list(script.published)

        def changed(before: Before, envelope: Envelope) -> Handled:
            other = deposit(envelope.id, amount=99) if envelope.id == "m-2" else envelope
            return RUNNER(before, other)

        done = script.play(attempt(STREAM, *deposits(3), deposit("m-9"), handle=changed))
        assert list(done.all(Publish)[0].outputs) == [sent[0], sent[2]]
        assert done.finished.processed == ("web/m-9",)
        ((key, error),) = done.finished.failed
        assert key == "web/m-2"
        self.require_reported(error, entries(script)[1], digest(RUNNER(*self.given(script)).outputs))

    def given(self, script: Script) -> tuple[Before, Envelope]:
        entry = entries(script)[1]
        first = Remembering()
        script.play(attempt(STREAM, deposits(2)[1], handle=first))
        assert first.given[0].at == entry.at
        return first.given[0], deposit("m-2", amount=99)

    def require_reported(self, error: ExactlyOnceError, entry: StreamEntry, found: str) -> None:
        assert isinstance(error, NonDeterministicHandler)
        text = str(error)
        assert "Message web/m-2 on entity account/a" in text
        assert found[:12] in text
        assert entry.digest[:12] in text
        assert "version 1," in text
        assert "assert_deterministic" in text

    def test_one_that_raises_fails_its_own_message(self) -> None:
        script = played(*deposits(2))

        def broken(before: Before, envelope: Envelope) -> Handled:
            return RUNNER(before, breaking(envelope.id) if envelope.id == "m-1" else envelope)

        done = script.play(attempt(STREAM, *deposits(2), handle=broken))
        assert done.kinds == [Together, FindEntries, Publish]
        ((key, error),) = done.finished.failed
        assert (key, type(error)) == ("web/m-1", HandlerFailed)
        assert numbers(script.published) == [1, 2, 2]

    def test_failures_of_duplicates_and_of_new_messages_are_reported_together(self) -> None:
        script = played(deposit("m-1"))

        def broken(before: Before, envelope: Envelope) -> Handled:
            return RUNNER(before, breaking(envelope.id))

        done = script.play(attempt(STREAM, deposit("m-2"), deposit("m-1"), handle=broken))
        assert [key for key, _ in done.finished.failed] == ["web/m-1", "web/m-2"]
        assert script.ledger.version == 1

    def test_a_copy_with_another_content_sends_what_its_message_sent(self) -> None:
        script = played(first := deposit("m-1", amount=1))
        done = script.play(attempt(STREAM, copy := deposit("m-1", amount=2)))
        assert script.published[0] == script.published[1]
        assert done.finished.failed == ()
        assert done.finished.differing((first, copy)) == (copy,)


MESSAGES = st.lists(st.sampled_from(["deposit", "close", "break"]), min_size=1, max_size=9)


@given(MESSAGES, st.integers(1, 4), st.randoms(use_true_random=False))
def test_every_duplicate_sends_what_its_message_sent(kinds: list[str], every: int, random: Any) -> None:
    make = {"deposit": deposit, "close": close, "break": breaking}
    messages = [make[kind](f"m-{number}") for number, kind in enumerate(kinds)]
    script, strategy = Script(), VersionStream(every)
    waiting = list(messages)
    while waiting:
        size = random.randint(1, 3)
        script.play(attempt(strategy, *waiting[:size]))
        waiting = waiting[size:]
    sent = {output.id: output for output in script.published}
    script.published.clear()
    again = random.sample(messages, len(messages))
    script.play(attempt(strategy, *again))
    assert {output.id: output for output in script.published} == sent
