"""Sending again what an entity sent: the same outputs, part by part, and nothing that is not what it was."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactlyonce import ConfigurationError, Envelope, VersionStream
from exactlyonce.attempt import Again, Before, Handle, Handled, Memory
from exactlyonce.effects.companions import FindEntries, FindNumbered, FoundCompanions, FoundNumbered
from exactlyonce.effects.effect import BEHIND, UNKNOWN, NoAnswer
from exactlyonce.effects.entity import Conflict, Loaded, LoadEntity, Publish, SaveEntity
from exactlyonce.errors import DamagedDocument, NonDeterministicHandler
from exactlyonce.handling.runner import Runner
from exactlyonce.protocols.colocated import Colocated
from exactlyonce.protocols.outbox.repair import renumber
from exactlyonce.protocols.stream.replay import Missing, Replayed, replay, versions_of
from exactlyonce.records.ledger import Ledger, entity_document
from exactlyonce.records.outbox import Output
from tests.samples import accounts, close, deposit
from tests.unit.protocols import sourcing
from tests.unit.script import ABSENT, CHANNEL, ENTITY, ORDERED, Played, Script, attempt, numbers, receipt, work_for

STREAM = VersionStream(snapshot_every=3)
RUNNER = Runner(accounts(), ENTITY, ORDERED)
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

    def test_the_last_one_ends_where_it_should(self) -> None:
        script = sending(*[1] * 8)
        assert replayed(script, 4, 5).result == Replayed(2, None, Memory(entity_token="0:-1#16"))
        assert replayed(script, 7, 100).result == Replayed(2, None, Memory(entity_token="0:-1#16"))

    def test_what_lies_beyond_the_newest_version_was_never_sent(self) -> None:
        script = sending(1, 1)
        played = replayed(script, 3, 9)
        assert played.kinds == [LoadEntity]
        assert played.result == Replayed(0, None, Memory(entity_token="0:-1#4"))

    def test_what_sent_nothing_is_gone_over_silently(self) -> None:
        played = replayed(sending(0, 0, 1), 1, 2)
        assert played.kinds == [LoadEntity, FindEntries]
        assert played.result == Replayed(0, None, Memory(entity_token="0:-1#6"))

    def test_it_is_the_same_to_the_letter(self) -> None:
        script = sending(2, 0, 1, 3, 1)
        published = list(script.published)
        assert all_of(script, 1, 5) == published

    def test_it_writes_nothing(self) -> None:
        script = sending(1, 1, 1)
        writes = script.writes
        all_of(script, 1, 3)
        assert script.writes == writes

    def test_it_goes_over_a_deletion(self) -> None:
        script = Script()
        for message in (deposit("m-1"), close("m-2"), deposit("m-3")):
            script.play(attempt(STREAM, message))
        published = list(script.published)
        assert all_of(script, 1, 3) == published


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

    def test_a_view_older_than_what_is_missing_proves_nothing(self) -> None:
        script = sending(1, 1)
        played = replayed(script, 2, 3, Missing(CHANNEL, 2, 3))
        assert played.kinds == [LoadEntity]
        assert not played.again.progressed
        assert played.again.memory == Memory(entity_token="0:-1#4")

    def test_an_output_without_a_number_is_never_missing(self) -> None:
        one = Output("o", "receipts", deposit("m-1").to_json())
        assert not Missing(CHANNEL, 1, 9).includes(one)
        numbered = Output("o", "receipts", deposit("m-1").to_json(), place=receipt(9))
        assert Missing(CHANNEL, 1, 9).includes(numbered)
        assert not Missing(CHANNEL, 1, 8).includes(numbered)

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

    def test_numbers_that_a_restored_entity_has_lost_are_in_no_view(self) -> None:
        assert looked_up(sending(1, 1), 3, 4).result is None
        assert looked_up(sending(1, 1), 2, 3).result == (2, 2)

    @pytest.mark.parametrize("kind", [LoadEntity, FindNumbered])
    @pytest.mark.parametrize("reply", [BEHIND, UNKNOWN])
    def test_without_an_answer_there_may_be_some(self, kind: Any, reply: NoAnswer) -> None:
        played = looked_up(sending(1), 1, 1, {kind: reply})
        assert played.kinds[-1] is kind
        assert isinstance(played.result, Again)


def looked_up(script: Script, first: int, last: int, replies: dict[Any, Any] | None = None) -> Played:
    return script.play(versions_of(ENTITY, Missing(CHANNEL, first, last), MEMORY), replies)


class TestTrouble:
    @pytest.mark.parametrize(
        ("kind", "reply"),
        [
            (LoadEntity, BEHIND),
            (LoadEntity, UNKNOWN),
            (FindEntries, BEHIND),
            (FindEntries, UNKNOWN),
            (Publish, UNKNOWN),
        ],
    )
    def test_an_effect_without_an_answer_is_the_last_one(self, kind: Any, reply: Any) -> None:
        played = replayed(sending(1, 1), 1, 2, replies={kind: reply})
        assert played.kinds[-1] is kind
        assert isinstance(played.result, Again)

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

    def test_only_a_stream_can_send_again(self) -> None:
        script = Script()
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

    def test_an_entity_that_never_processed_anything_sent_nothing(self) -> None:
        assert replayed(Script(), 1, 9).result == Replayed(0, None, Memory(entity_token="0:-1#0"))
        tombstone = entity_document(ABSENT, Ledger(deleted=True, type="account", protocol="stream"))
        assert replayed(Script(tombstone), 1, 9).result == Replayed(0, None, Memory(entity_token="0:-1#1"))
