"""Clean-up of companions: what it deletes, and what keeps it from deleting, in examples and random histories."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactlyonce import ConfigurationError, Envelope, StoredDataError, VersionStream
from exactlyonce.effects.attempt import Finished, Memory
from exactlyonce.effects.companions import DeleteCompanions, LoadCompanions
from exactlyonce.effects.effect import UNKNOWN
from exactlyonce.effects.entity import LoadEntity, Publish
from exactlyonce.errors import DamagedDocument
from exactlyonce.protocols.steps.clean import is_candidate, last_entry, may_go
from exactlyonce.protocols.stream.replay import replay
from tests import samples
from tests.samples import close, deposit
from tests.unit.boards import Readers, scored
from tests.unit.protocols import sourcing
from tests.unit.protocols.cleaning import COLOCATED, NOTHING, RETENTION, STREAM, cleaned, left, listed, processed
from tests.unit.protocols.sourcing import Noted, Paid  # noqa: F401  # Registered for the event-sourced account.
from tests.unit.script import AT, ENTITY, Script, attempt


class TestTheRule:
    @pytest.mark.parametrize(
        ("kind", "unfinished", "place", "last", "goes"),
        [
            ("processed", False, 0, 0, True),
            ("processed", False, 7, 0, True),
            ("processed", True, 0, 0, False),
            ("entry", False, 6, 6, True),
            ("entry", False, 7, 6, False),
            ("entry", True, 6, 6, False),
            ("numbered", False, 4, 4, True),
            ("numbered", False, 5, 4, False),
            ("numbered", True, 4, 4, False),
        ],
    )
    def test_what_is_unfinished_or_beyond_the_last_place_stays(
        self, kind: Any, unfinished: bool, place: int, last: int, goes: bool
    ) -> None:
        assert may_go(kind, unfinished=unfinished, place=place, last=last) is goes
        older, as_old = RETENTION + timedelta(seconds=1), RETENTION
        assert is_candidate(kind, older, RETENTION, unfinished=unfinished, place=place, last=last) is goes
        assert not is_candidate(kind, as_old, RETENTION, unfinished=unfinished, place=place, last=last)

    @pytest.mark.parametrize(
        ("newest", "every", "sourced", "last"),
        [
            (0, 3, False, 0),
            (5, 3, False, 5),
            (0, 3, True, 0),
            (2, 3, True, 0),
            (3, 3, True, 3),
            (5, 3, True, 3),
            (6, 3, True, 6),
            (5, 1, True, 5),
            (5, None, False, 0),
            (5, None, True, 0),
        ],
    )
    def test_of_events_only_whole_intervals_go(self, newest: int, every: int | None, sourced: bool, last: int) -> None:
        assert last_entry(newest, snapshot_every=every, event_sourced=sourced) == last


class TestRecords:
    def test_they_are_read_again_and_deleted_as_they_were_listed(self) -> None:
        script = processed(COLOCATED, "m-1", "m-2")
        candidates = listed(script)
        played = cleaned(script, "colocated", candidates[:1])
        assert played.effects == (LoadCompanions(ENTITY, (candidates[0][0],)), DeleteCompanions(ENTITY, candidates[:1]))
        assert played.result == Finished(Memory())
        assert left(script) == ["m-2"]

    def test_one_that_owes_stays_however_old_it_is(self) -> None:
        script = Script()
        script.play(attempt(COLOCATED, deposit("m-1")), {Publish: UNKNOWN})
        script.play(attempt(COLOCATED, deposit("m-2")))
        script.at = AT + 10 * RETENTION
        cleaned(script, "colocated")
        assert left(script) == ["m-1"]
        assert cleaned(script, "colocated").kinds == [LoadCompanions]

    def test_without_candidates_nothing_is_asked(self) -> None:
        for protocol in ("colocated", "stream", "resequencer"):
            assert cleaned(Script(), protocol, ()).effects == ()

    def test_the_entity_itself_is_no_candidate(self) -> None:
        script = processed(COLOCATED, "m-1")
        etag = script._partition.newest(ENTITY.id).etag
        with pytest.raises(StoredDataError):
            cleaned(script, "colocated", ((ENTITY.id, etag), *listed(script)))
        assert (script.body is None, left(script)) == (False, ["m-1"])


class TestStreams:
    def test_ways_back_go_and_the_head_stays(self) -> None:
        script = processed(STREAM, "m-1", "m-2", "m-3", "m-4")
        document = script.document
        played = cleaned(script, "stream", listed(script)[:2])
        assert played.kinds == [LoadEntity, LoadCompanions, DeleteCompanions]
        assert (left(script), script.document) == (["m-3", "m-4"], document)
        assert played.result == Finished(Memory(entity_token="0:-1#8"))
        cleaned(script, "stream")
        assert (left(script), script.document) == ([], document)
        script.play(attempt(STREAM, deposit("m-5")))
        assert script.ledger.version == 5

    def test_an_entity_of_another_protocol_is_refused(self) -> None:
        script = processed(STREAM, "m-1")
        with pytest.raises(ConfigurationError, match="'stream'"):
            cleaned(script, "resequencer")
        assert left(script) == ["m-1"]

    def test_a_replay_reaches_back_to_the_oldest_entry(self) -> None:
        script = processed(STREAM, "m-1", "m-2", "m-3")
        sent = list(script.published)
        cleaned(script, "stream", listed(script)[:1])
        script.published.clear()
        with pytest.raises(DamagedDocument, match="older than the retention"):
            script.play(replay(sourcing.work(samples.accounts(STREAM)), (1, 3), Memory()))
        assert script.published == []
        script.play(replay(sourcing.work(samples.accounts(STREAM)), (2, 3), Memory()))
        assert script.published == sent[1:]


class TestNumbers:
    def test_released_ones_go_held_ones_stay_and_copies_are_still_dropped(self, readers: Readers) -> None:
        readers.delivered(scored(1), scored(2), scored(4))
        played = cleaned(readers, "resequencer")
        assert played.requests == [LoadEntity, LoadCompanions, DeleteCompanions]
        assert ([companion.message for companion in readers.companions], readers.waiting) == (["s/m-4"], ["s4"])
        readers.delivered(scored(1), scored(2))
        readers.delivered(scored(3))
        assert readers.seen == ["1", "2", "3", "4"]

    def test_in_a_view_from_before_its_release_a_message_stays(self, readers: Readers) -> None:
        readers.delivered(scored(1), scored(1, "other"), scored(2, "other"))
        before = readers.usual(LoadEntity(readers.entity))
        readers.delivered(scored(2))
        cleaned(readers, "resequencer", replies={LoadEntity: before})
        assert [companion.message for companion in readers.companions] == ["s/m-2"]
        assert cleaned(readers, "resequencer", replies={LoadEntity: NOTHING}).requests == [LoadEntity, LoadCompanions]


TYPES = {
    "ways back": lambda every: samples.accounts(VersionStream(every)),
    "events": lambda every: sourcing.accounts(VersionStream(every)),
    "records": lambda every: samples.accounts(COLOCATED),
}
STEP = st.tuples(st.sampled_from([deposit, close]), st.integers(0, 12), st.booleans())
"""A message, days until it comes, and whether the clean-up runs after it."""


def lossy(script: Script, chance: Any) -> Any:
    """Deletions of which any part may be lost."""

    def delete(effect: DeleteCompanions) -> None:
        script.usual(
            DeleteCompanions(ENTITY, tuple(companion for companion in effect.companions if chance.random() < 0.8))
        )

    return delete


@pytest.mark.parametrize("name", TYPES)
@given(steps=st.lists(STEP, min_size=1, max_size=14), every=st.integers(1, 4), chance=st.randoms(use_true_random=False))
def test_a_copy_inside_the_retention_finds_what_it_left_and_sends_what_it_sent(
    name: str, steps: list[tuple[Any, int, bool]], every: int, chance: Any
) -> None:
    type, script = TYPES[name](every), Script()
    protocol: str = "colocated" if name == "records" else "stream"
    came: list[tuple[Envelope, Any]] = []
    for number, (make, days, cleans) in enumerate(steps):
        script.at += timedelta(days=days)
        message = make(f"m-{number}")
        came.append((message, script.at))
        script.play(sourcing.attempt(type, message))
        if cleans or number == len(steps) - 1:
            old = listed(script, RETENTION + timedelta(seconds=1))
            some = tuple(item for item in old if chance.random() < 0.8)
            cleaned(script, protocol, some, {DeleteCompanions: lossy(script, chance)})
    sent = {output.id: output for output in script.published}
    recent = [message for message, at in came if script.at - at <= RETENTION]
    script.published.clear()
    version = script.ledger.version
    kept = {str(companion.message) for companion in script.companions}
    assert kept >= {f"web/{message.id}" for message in recent}
    for message in chance.sample(recent, len(recent)):
        finished = script.play(sourcing.attempt(type, message)).finished
        assert (finished.processed, finished.failed) == ((), ())
    assert script.ledger.version == version
    assert all(output == sent[output.id] for output in script.published)
    assert len(script.published) == (0 if name == "records" else len(recent))
