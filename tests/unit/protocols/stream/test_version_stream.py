"""The version stream: what an entry keeps, how a duplicate is handled again on the state it was first handled on, and how
outputs are sent again."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactlyonce import ConfigurationError
from exactlyonce.effects.attempt import Before, Finished, Handle, Handled, Memory
from exactlyonce.effects.companions import (
    FindEntries,
    FindNumbered,
    FoundCompanions,
    FoundNumbered,
    LoadCompanions,
    SaveBatch,
)
from exactlyonce.effects.effect import UNKNOWN, Begin, Together
from exactlyonce.effects.entity import Conflict, Loaded, LoadEntity, Publish, SaveEntity
from exactlyonce.errors import DamagedDocument, EntityTooLarge, ExactlyOnceError, NonDeterministicHandler
from exactlyonce.handling.runner import Runner
from exactlyonce.protocols.colocated import Colocated
from exactlyonce.protocols.outbox.repair import renumber
from exactlyonce.protocols.steps.batch import BATCH_BYTES
from exactlyonce.protocols.stream.protocol import VersionStream
from exactlyonce.protocols.stream.replay import Missing, Replayed, replay, versions_of
from exactlyonce.records.companions import StreamEntry, entry_id
from exactlyonce.records.ledger import Ledger, entity_document
from exactlyonce.records.outbox import Output, Sequence, digest
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json
from tests.samples import accounts, breaking, close, deposit
from tests.unit.protocols import sourcing
from tests.unit.script import ABSENT, AT, CHANNEL, ENTITY, ORDERED, Played, Script, attempt, numbers, work_for

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
    def test_it_keeps_message_time_and_digest_but_no_outputs(self, script: Script) -> None:
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

    def test_it_goes_back_over_a_deletion_whatever_numbers_it_left(self, script: Script) -> None:
        sequences = tuple(Sequence("receipts", f"reader/r-{number}", "c", 1) for number in range(9))
        given: list[Json | None] = []

        def handle(before: Before, envelope: Envelope) -> Handled:
            given.append(before.body)
            deleted = envelope.id == "m-2"
            body = {"id": ENTITY.id, "note": "x" * 200, "total": 0 if deleted else 5}
            return Handled(Json.of(body), (), deleted=deleted, sequences=sequences)

        script.play(attempt(STREAM, deposit("m-1"), deposit("m-2"), handle=handle))
        assert entries(script)[1].whole, "nothing is left that a patch could change"
        script.play(attempt(STREAM, deposit("m-2"), handle=handle))
        assert given[2] == given[1]

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


def growing(id: str, size: int, character: str = "x") -> Any:
    """A message that makes the state so large."""
    body = Json.of({"id": "a", "owner": "a", "note": character * size})
    return attempt(STREAM, deposit(id), handle=lambda *_: Handled(body))


def noting(before: Before, _: Envelope) -> Handled:
    """Leaves the state as it is."""
    assert before.body is not None
    return Handled(before.body)


def test_it_is_refused_before_an_entry_cannot_hold_it(script: Script) -> None:
    failed: list[ExactlyOnceError] = []
    for size in range(700_000, 1_000_000, 50_000):
        failed += [error for _, error in script.play(growing(f"m-{size}", size)).finished.failed]
    assert {type(error) for error in failed} == {EntityTooLarge}
    assert re.search(r"Message web/m-900000 on entity account/a: .* twice in one batch.* Keep less", str(failed[0]))
    committed = script.ledger.version
    for number in range(6):
        assert script.play(attempt(STREAM, deposit(f"m-{number}"), handle=noting)).finished.failed == ()
    assert script.ledger.version == committed + 6


def test_it_may_be_as_large_as_stated_and_no_larger() -> None:
    def of(size: int) -> str:
        """The error for a state of so many bytes."""
        failed = Script().play(growing("m-1", size - frame)).finished.failed
        return "".join(str(error) for _, error in failed)

    nothing = Json.of({"body": {"id": "a", "owner": "a", "note": ""}})
    frame, quotes = nothing.size, nothing.text.count('"')
    largest = (BATCH_BYTES - 100_000 - len('""') - quotes) // 2  # Twice, once as a string, next to a message.
    assert of(largest) == ""
    assert f"the state would have {largest + 1} bytes" in of(largest + 1)
    assert f"{BATCH_BYTES + 2} bytes with a message" in of(largest + 1)


def test_it_may_become_smaller_from_whatever_it_was() -> None:
    def holding(*sizes: int) -> Json:
        return Json.of({"id": "a", "owner": "a", "notes": ["x" * size for size in sizes]})

    script = Script(holding(800_000, 300_000))
    for version, last in enumerate((200_000, 201_000, 100_000), 1):
        step = attempt(STREAM, deposit(f"m-{version}"), handle=lambda *_, to=last: Handled(holding(800_000, to)))
        failed = [type(error) for _, error in script.play(step).finished.failed]
        assert failed == ([EntityTooLarge] if last == 201_000 else [])


def test_a_state_that_an_entry_has_to_escape_all_through_needs_room_for_its_message_too() -> None:
    state = Json.of({"id": "a", "owner": "a", "note": '"' * 310_000})
    played = Script().play(attempt(VersionStream(3), deposit("m-1"), handle=lambda *_: Handled(state, ())))
    ((_, error),) = played.finished.failed
    assert isinstance(error, EntityTooLarge)


MEMORY = Memory(entity_token="0:-1#1")


def sending(*answers: int) -> Script:
    """An entity that processed a message for each of these, which sent so many outputs."""
    script = Script()
    for number, count in enumerate(answers, 1):
        script.play(attempt(STREAM, deposit(f"m-{number}", answers=count)))
    return script


def replayed(
    script: Script,
    first: int,
    last: int,
    missing: Missing | None = None,
    *,
    handle: Handle | None = None,
    replies: dict[Any, Any] | None = None,
) -> Played:
    return script.play(replay(work_for(handle=handle), (first, last), Memory(), missing), replies)


def all_of(script: Script, first: int, last: int, missing: Missing | None = None) -> list[Output]:
    """Replay to the end; return what was published."""
    script.published.clear()
    following: int | None = first
    while following is not None:
        part = replayed(script, following, last, missing).result
        assert isinstance(part, Replayed)
        assert part.following is None or part.following > following
        following = part.following
    return script.published


class TestAPart:
    def test_it_reaches_as_far_as_the_next_whole_state(self) -> None:
        script = sending(*[1] * 8)
        played = replayed(script, 2, 8)
        assert played.kinds == [LoadEntity, FindEntries, Publish]
        assert played.only(FindEntries) == FindEntries(ENTITY, ((2, 3),), "0:-1#16")
        assert played.result == Replayed(2, 4, Memory(entity_token="0:-1#16"))
        assert numbers(list(played.only(Publish).outputs)) == [2, 3]

    def test_what_lies_beyond_the_newest_version_was_never_sent(self) -> None:
        script = sending(1, 1)
        played = replayed(script, 3, 9)
        assert played.kinds == [LoadEntity]
        assert played.result == Replayed(0, None, Memory(entity_token="0:-1#4"))

    def test_what_sent_nothing_is_gone_over_silently(self) -> None:
        played = replayed(sending(0, 0, 1), 1, 2)
        assert played.kinds == [LoadEntity, FindEntries]
        assert played.result == Replayed(0, None, Memory(entity_token="0:-1#6"))


@given(st.lists(st.integers(0, 2), min_size=1, max_size=8), st.integers(1, 9), st.integers(1, 9))
def test_any_range_is_sent_again_as_it_was(answers: list[int], first: int, last: int) -> None:
    script = sending(*answers)
    published = list(script.published)
    before, after = sum(answers[: first - 1]), sum(answers[:last])
    assert all_of(script, first, last) == published[before:after]


class TestWhatIsMissing:
    def test_nothing_else_is_sent(self) -> None:
        script = sending(1, 2, 2)
        assert numbers(all_of(script, 1, 3, Missing(CHANNEL, 3, 4))) == [3, 4]
        assert all_of(script, 1, 3, Missing("another", 3, 4)) == []

    def test_its_versions_are_looked_up_in_the_stream(self) -> None:
        script = sending(1, 0, 2, 1)
        played = looked_up(script, 2, 3)
        assert played.kinds == [LoadEntity, FindNumbered]
        assert played.only(LoadEntity).token == "0:-1#1"
        assert played.only(FindNumbered) == FindNumbered(ENTITY, CHANNEL, (2, 3), "0:-1#8")
        assert played.result == (3, 3)
        assert looked_up(script, 1, 4).result == (1, 4)

    def test_clean_up_may_have_taken_them(self) -> None:
        assert looked_up(sending(1), 1, 1, {FindNumbered: FoundNumbered(())}).result is None

    @pytest.mark.parametrize("reply", [Conflict("0:-1#9"), UNKNOWN])
    def test_what_was_not_sent_yet_is_a_sign_of_an_older_view(self, reply: Any) -> None:
        for missing in (Missing(CHANNEL, 2, 3), Missing("another", 1, 1)):
            played = sending(1, 1).play(versions_of(ENTITY, missing, MEMORY), {SaveEntity: reply})
            assert played.kinds == [LoadEntity, SaveEntity]
            assert not played.again.progressed

    def test_an_entity_that_does_not_exist_proves_nothing(self) -> None:
        played = looked_up(Script(), 1, 1, {LoadEntity: Loaded(None, None, 0, None)})
        assert played.kinds == [LoadEntity]
        assert "does not exist" in played.again.reason

    def test_a_channel_that_the_entity_has_forgotten_is_answered_from_its_stream(self) -> None:
        script = sending(1, 1, 1)
        before = script.document
        script.play(renumber(ENTITY, STREAM, MEMORY))
        played = looked_up(script, 2, 3)
        assert played.kinds == [LoadEntity, SaveEntity, FindNumbered]
        assert played.only(SaveEntity).document == script.document != before
        assert played.result == (2, 3)


def looked_up(script: Script, first: int, last: int, replies: dict[Any, Any] | None = None) -> Played:
    return script.play(versions_of(ENTITY, Missing(CHANNEL, first, last), MEMORY), replies)


class TestTrouble:
    def test_a_handler_that_changed_sends_nothing_of_its_part(self) -> None:
        def changed(before: Before, envelope: Envelope) -> Handled:
            return RUNNER(before, deposit(envelope.id, amount=9) if envelope.id == "m-2" else envelope)

        script = sending(1, 1)
        with pytest.raises(NonDeterministicHandler, match="web/m-2 on entity account/a"):
            replayed(script, 1, 2, handle=changed)
        assert not [item for item in script.asked if isinstance(item, Publish)]

    def test_a_stream_of_which_clean_up_has_taken_a_part_is_refused(self) -> None:
        with pytest.raises(DamagedDocument, match="not every version from 1 to 2"):
            replayed(sending(1, 1), 1, 2, replies={FindEntries: FoundCompanions(())})

    def test_only_a_stream_can_send_again(self, script: Script) -> None:
        script.play(attempt(Colocated(), deposit("m-1")))
        with pytest.raises(ConfigurationError, match=r"'colocated'.*'stream'"):
            replayed(script, 1, 1)

    @pytest.mark.parametrize("first", [0, -3])
    def test_a_version_that_cannot_be_is_no_damage(self, first: int) -> None:
        with pytest.raises(ConfigurationError, match=f"account/a .* from version {first} on: .* counted from 1"):
            replayed(sending(1), first, 1)

    def test_a_stream_of_events_is_not_taken_for_one_of_states(self) -> None:
        stored = entity_document(
            ABSENT, Ledger(1, type="account", protocol="stream", snapshot_every=3, event_sourced=True)
        )
        script = Script(stored)
        with pytest.raises(ConfigurationError, match="account/a holds events, but its type applies none"):
            replayed(script, 1, 1)
        assert [type(item) for item in script.asked] == [LoadEntity]

    def test_a_stream_of_states_is_not_taken_for_one_of_events(self) -> None:
        script = Script(entity_document(ABSENT, Ledger(1, type="account", protocol="stream", snapshot_every=3)))
        with pytest.raises(ConfigurationError, match="account/a holds no events, but its type applies some"):
            script.play(replay(sourcing.work(sourcing.accounts(VersionStream(3))), (1, 1), Memory()))
