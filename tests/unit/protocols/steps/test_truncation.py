"""Clean-up of companions: what it deletes, what it leaves, and what keeps it from deleting."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from exactlyonce import ConfigurationError, StoredDataError
from exactlyonce.attempt import Finished, Memory
from exactlyonce.effects.companions import DeleteCompanions, LoadCompanions, ReplaceCompanions
from exactlyonce.effects.effect import BEHIND, UNKNOWN
from exactlyonce.effects.entity import LoadEntity, Publish
from exactlyonce.errors import DamagedDocument
from exactlyonce.protocols.steps.clean import is_candidate, last_entry, may_go
from exactlyonce.protocols.stream.replay import replay
from tests import samples
from tests.samples import deposit
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

    def test_one_that_was_written_since_it_was_listed_is_of_another_age_and_stays(self) -> None:
        script = Script()
        script.play(attempt(COLOCATED, deposit("m-1")), {Publish: UNKNOWN})
        candidates = listed(script)
        script.play(attempt(COLOCATED, deposit("m-1")))
        assert cleaned(script, "colocated", candidates).kinds == [LoadCompanions]
        assert left(script) == ["m-1"]

    def test_one_that_is_written_anew_before_the_deletion_arrives_stays(self) -> None:
        script = processed(COLOCATED, "m-1")
        candidates = listed(script)
        late: list[DeleteCompanions] = []
        cleaned(script, "colocated", candidates, {DeleteCompanions: late.append})
        cleaned(script, "colocated", candidates)
        script.play(attempt(COLOCATED, deposit("m-1")), {Publish: UNKNOWN})
        script.usual(late[0])
        assert left(script) == ["m-1"]

    def test_who_drops_what_it_published_brings_nothing_back(self) -> None:
        script = processed(COLOCATED, "m-1")
        (record,) = script.companions
        cleaned(script, "colocated")
        script.usual(ReplaceCompanions(ENTITY, ((record, None),)))
        assert left(script) == []

    def test_those_that_are_gone_are_not_asked_for_again(self) -> None:
        script = processed(COLOCATED, "m-1")
        candidates = listed(script)
        cleaned(script, "colocated")
        assert cleaned(script, "colocated", candidates).kinds == [LoadCompanions]

    def test_without_candidates_nothing_is_asked(self) -> None:
        for protocol in ("colocated", "stream", "resequencer"):
            assert cleaned(Script(), protocol, ()).effects == ()

    def test_what_cannot_be_read_is_left_alone(self) -> None:
        script = processed(COLOCATED, "m-1")
        assert cleaned(script, "colocated", replies={LoadCompanions: UNKNOWN}).again.reason
        assert left(script) == ["m-1"]

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

    @pytest.mark.parametrize(("old", "gone"), [(1, 0), (2, 0), (3, 3), (4, 3), (5, 3), (6, 6), (7, 6)])
    def test_of_events_only_intervals_go_of_which_all_is_old(self, old: int, gone: int) -> None:
        type = sourcing.accounts(STREAM)
        ids = [f"m-{number}" for number in range(1, 8)]
        script = processed(STREAM, *ids, type=type)
        played = cleaned(script, "stream", listed(script)[:old])
        assert left(script) == ids[gone:]
        assert len(played.all(DeleteCompanions)) == bool(gone)

    def test_what_is_left_of_an_interval_goes_with_a_later_one(self) -> None:
        script = processed(STREAM, *(f"m-{number}" for number in range(1, 5)), type=sourcing.accounts(STREAM))

        def newest_only(effect: DeleteCompanions) -> None:
            script.usual(DeleteCompanions(ENTITY, effect.companions[-1:]))

        cleaned(script, "stream", replies={DeleteCompanions: newest_only})
        assert left(script) == ["m-1", "m-2", "m-4"]
        cleaned(script, "stream")
        assert left(script) == ["m-4"]

    def test_a_view_from_before_the_stream_does_not_show_its_kind_so_nothing_goes(self) -> None:
        script = processed(STREAM, "m-1", "m-2", "m-3", type=sourcing.accounts(STREAM))
        assert cleaned(script, "stream", replies={LoadEntity: NOTHING}).kinds == [LoadEntity, LoadCompanions]
        assert left(script) == ["m-1", "m-2", "m-3"]

    @pytest.mark.parametrize("reply", [UNKNOWN, BEHIND])
    def test_an_entity_that_cannot_be_read_is_left_alone(self, reply: Any) -> None:
        script = processed(STREAM, "m-1")
        played = cleaned(script, "stream", replies={LoadEntity: reply})
        assert (played.kinds, left(script)) == ([LoadEntity], ["m-1"])
        assert played.again.reason

    def test_an_entity_of_another_protocol_is_refused(self) -> None:
        script = processed(STREAM, "m-1")
        with pytest.raises(ConfigurationError, match="'stream'"):
            cleaned(script, "resequencer")
        assert left(script) == ["m-1"]

    def test_entries_do_not_go_where_records_are_meant(self) -> None:
        script = processed(STREAM, "m-1")
        assert cleaned(script, "colocated").kinds == [LoadCompanions]

    def test_what_is_sent_again_reaches_back_as_far_as_there_are_entries(self) -> None:
        script = processed(STREAM, "m-1", "m-2", "m-3")
        sent = list(script.published)
        cleaned(script, "stream", listed(script)[:1])
        script.published.clear()
        with pytest.raises(DamagedDocument, match="older than the retention"):
            script.play(replay(sourcing.work(samples.accounts(STREAM)), (1, 3), Memory()))
        assert script.published == []
        script.play(replay(sourcing.work(samples.accounts(STREAM)), (2, 3), Memory()))
        assert script.published == sent[1:]
