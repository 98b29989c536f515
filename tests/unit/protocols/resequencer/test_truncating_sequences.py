"""Clean-up of the documents of numbers: what was released may go, what is held stays, and copies stay known."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from exactlyonce.attempt import Again, Memory
from exactlyonce.effects.companions import DeleteCompanions, LoadCompanions, SaveBatch
from exactlyonce.effects.entity import LoadEntity
from exactlyonce.protocols.resequencer.protocol import Resequencer
from tests.unit.boards import Readers, scored
from tests.unit.protocols.cleaning import NOTHING, cleaned, listed
from tests.unit.protocols.sourcing import Noted, Paid  # noqa: F401  # Registered for the event-sourced account.


class TestNumbers:
    def test_released_ones_go_held_ones_stay_and_copies_are_still_dropped(self) -> None:
        readers = Readers()
        readers.delivered(scored(1), scored(2), scored(4))
        played = cleaned(readers, "resequencer")
        assert played.requests == [LoadEntity, LoadCompanions, DeleteCompanions]
        assert ([companion.message for companion in readers.companions], readers.waiting) == (["s/m-4"], ["s4"])
        readers.delivered(scored(1), scored(2))
        readers.delivered(scored(3))
        assert readers.seen == ["1", "2", "3", "4"]

    def test_one_whose_handler_raises_is_held_and_stays(self) -> None:
        readers = Readers()
        readers.broken = {("s", 1)}
        readers.delivered(scored(1), scored(2))
        assert cleaned(readers, "resequencer").requests == [LoadEntity, LoadCompanions]
        readers.broken.clear()
        readers.delivered(scored(3))
        assert readers.seen == ["1", "2", "3"]

    def test_in_a_view_from_before_its_release_a_message_stays(self) -> None:
        readers = Readers()
        readers.delivered(scored(1), scored(1, "other"), scored(2, "other"))
        before = readers.usual(LoadEntity(readers.entity))
        readers.delivered(scored(2))
        cleaned(readers, "resequencer", replies={LoadEntity: before})
        assert [companion.message for companion in readers.companions] == ["s/m-2"]
        assert cleaned(readers, "resequencer", replies={LoadEntity: NOTHING}).requests == [LoadEntity, LoadCompanions]

    def test_each_sequence_has_its_own_next(self) -> None:
        readers = Readers()
        readers.delivered(scored(1), scored(2), scored(2, "other"))
        cleaned(readers, "resequencer")
        assert readers.waiting == ["other2"]

    def test_one_that_was_released_since_it_was_listed_is_young_and_stays(self) -> None:
        readers = Readers()
        readers.delivered(scored(2))
        candidates = listed(readers)
        readers.delivered(scored(1))
        assert cleaned(readers, "resequencer", candidates).requests == [LoadEntity, LoadCompanions]
        assert len(readers.companions) == 2

    def skipped(self) -> Readers:
        """A read model that has given up on number 1."""
        readers = Readers(strategy=Resequencer(gap_timeout=timedelta(0), on_gap="skip"))
        readers.delivered(scored(2))
        while isinstance(readers.play(readers.strategy.tend(readers.work(), Memory())).result, Again):
            pass
        assert readers.seen == ["2"]
        return readers

    def test_what_was_skipped_goes_and_stays_skipped(self) -> None:
        readers = self.skipped()
        cleaned(readers, "resequencer")
        readers.delivered(scored(1), scored(3))
        assert (readers.seen, [companion.message for companion in readers.companions]) == (["2", "3"], ["s/m-3"])

    def test_a_message_that_comes_for_a_number_that_is_being_cleaned_up_is_noted_or_dropped(self) -> None:
        noted, dropped = self.skipped(), self.skipped()
        candidates = listed(noted)

        def after_the_message(effect: DeleteCompanions) -> None:
            noted.delivered(scored(1))
            noted.usual(effect)

        cleaned(noted, "resequencer", candidates, {DeleteCompanions: after_the_message})
        assert (noted.seen, [companion.message for companion in noted.companions]) == (["2"], ["s/m-1"])

        def after_the_deletion(effect: SaveBatch) -> Any:
            cleaned(dropped, "resequencer", candidates)
            return dropped.usual(effect)

        played = dropped.attempted(scored(1), replies={SaveBatch: after_the_deletion})
        assert isinstance(played.result, Again)
        dropped.delivered(scored(1))
        assert (dropped.seen, dropped.companions) == (["2"], [])
