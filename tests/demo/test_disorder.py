"""The demo's disorder loses an outcome with all its copies or not at all, and everything else arrives."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo.disorder import Disorder, Gap, Place, gaps, place_of, plan_losses
from demo.queues import Received
from demo.shots import Shot
from exactlyonce import Envelope
from exactlyonce.records import outbox as places
from exactlyonce.records.ledger import Ledger, entity_document
from exactlyonce.records.outbox import Reception
from exactlyonce.values.frozen_json import Json


def outcome(game: str, number: int) -> bytes:
    extensions = places.Place(f"c{game[2:]}", f"board/{game}", number).extensions
    envelope = Envelope(f"range/{game}", f"{game}-{number}", "shooting-range.hit", Json("{}"), extensions=extensions)
    return envelope.to_json().text.encode()


class Empty(Exception):
    """The queue was asked for more than there was."""


@dataclass
class FakeQueue:
    """A queue that keeps what is sent to it, and when it is to appear."""

    bodies: list[bytes] = field(default_factory=list)
    sent: list[tuple[bytes, int]] = field(default_factory=list)
    breaking: bool = False

    async def receive(self) -> list[Received]:
        if not self.bodies:
            raise Empty
        return [Received(body, body) for body in self.bodies]

    async def send(self, body: bytes, delay: int = 0) -> None:
        self.sent.append((body, delay))

    async def delete(self, message: Received) -> None:
        if self.breaking:
            raise ConnectionError
        self.bodies.remove(message.token)

    async def waiting(self) -> int:
        return len(self.bodies)

    async def given_up(self) -> int:
        return 0

    @property
    def arrived(self) -> Counter[bytes]:
        return Counter(content for content, _ in self.sent)


async def brought(disorder: Disorder, *bodies: bytes) -> FakeQueue:
    """What reaches the board of these messages on the way."""
    way, board = FakeQueue(list(bodies)), FakeQueue()
    with pytest.raises(Empty):
        await disorder.reign(way, board)
    assert way.bodies == []
    return board


LOST: frozenset[Place] = frozenset({("g-1", 4), ("g-2", 6)})
ALL = [outcome(game, number) for game in ("g-1", "g-2", "g-3") for number in range(1, 9)]
KEPT = [body for body in ALL if place_of(Envelope.read(body)) not in LOST]


async def test_everything_arrives_but_what_is_lost() -> None:
    board = await brought(Disorder(Random(1), LOST), *ALL)
    assert set(board.arrived) == set(KEPT)


async def test_a_lost_message_is_lost_with_all_its_copies_and_no_other_loses_a_copy() -> None:
    board = await brought(Disorder(Random(1), LOST), *ALL, *reversed(ALL), *ALL)
    assert set(board.arrived) == set(KEPT)
    assert min(board.arrived.values()) >= 3


async def test_messages_change_places_and_copies_appear() -> None:
    disorder = Disorder(Random(1), frozenset())
    bodies = [outcome("g-1", number) for number in range(1, 201)]
    board = await brought(disorder, *bodies)
    assert {delay for _, delay in board.sent} == {0, 1, 2}
    assert 205 <= len(board.sent) <= 240
    late = {body for body, delay in board.sent if delay}
    assert disorder.displaced == len(late) > 100


async def test_a_lost_message_turns_up_once() -> None:
    disorder = Disorder(Random(1), LOST)
    await brought(disorder, *ALL, *ALL)
    board = FakeQueue()
    for _ in range(2):
        await disorder.give_back(board)
    assert board.arrived == Counter([outcome("g-1", 4), outcome("g-2", 6)])


async def test_in_calm_everything_is_brought_at_once_as_it_comes() -> None:
    disorder = Disorder(Random(1), LOST, calm=True)
    board = await brought(disorder, *ALL)
    assert board.sent == [(body, 0) for body in ALL]
    assert (disorder.displaced, disorder.lost) == (0, {})


async def test_a_message_is_sent_on_before_it_is_taken_away() -> None:
    way, board = FakeQueue([ALL[0]], breaking=True), FakeQueue()
    with pytest.raises(ConnectionError):
        await Disorder(Random(1), LOST).reign(way, board)
    assert board.arrived.keys() == {ALL[0]}
    assert way.bodies == [ALL[0]]


@given(st.lists(st.sampled_from(["g-1", "g-2", "g-3", "g-4"]), max_size=60), st.randoms(use_true_random=False))
def test_lost_is_none_of_the_first_outcomes_of_a_game_and_never_its_last(games: list[str], random: Random) -> None:
    counts = Counter(games)
    losses = plan_losses((Shot(f"s-{number}", game, 0) for number, game in enumerate(games)), random)
    assert all(4 <= number < counts[game] for game, number in losses)
    assert len({game for game, _ in losses}) == len(losses) == min(2, sum(count > 4 for count in counts.values()))


def stack_with(*documents: tuple[str, dict[str, Any] | None]) -> Any:
    """A stack whose board was written so, in this order."""
    written = [SimpleNamespace(id=id, document=document) for id, document in documents]
    return SimpleNamespace(cosmos=SimpleNamespace(history=lambda database, container: written))


def board(game: str, *receptions: Reception) -> tuple[str, dict[str, Any]]:
    document: dict[str, Any] = entity_document(Json.of({"id": game}), Ledger(receptions=receptions)).value
    return game, document


class TestGaps:
    def test_one_is_identified_by_its_game_its_number_and_what_is_held(self) -> None:
        stack = stack_with(board("g-1", Reception("c1", "range/g-1", 4, ((5, 7), (9, 9)))))
        (gap,) = gaps(stack)
        assert gap == Gap("g-1", "range/g-1", 4, 4)
        assert str(gap) == "g-1 waits for number 4, with 4 held"

    def test_where_nothing_is_held_nothing_is_missing(self) -> None:
        assert gaps(stack_with(board("g-1", Reception("c1", "range/g-1", 4)), board("g-2"))) == ()

    def test_the_latest_document_of_each_line_counts(self) -> None:
        waiting, released = Reception("c1", "range/g-1", 4, ((5, 5),)), Reception("c1", "range/g-1", 6)
        assert gaps(stack_with(board("g-1", waiting), board("g-1", released))) == ()
        assert len(gaps(stack_with(board("g-1", released), board("g-2", waiting)))) == 1

    def test_each_source_of_a_line_has_its_own(self) -> None:
        sources = [Reception(name, f"range/{name}", 2, ((3, 3),)) for name in "ab"]
        assert [gap.source for gap in gaps(stack_with(board("g-1", *sources)))] == ["range/a", "range/b"]

    def test_companions_of_a_line_and_deletions_are_passed_over(self) -> None:
        line = board("g-1", Reception("c1", "range/g-1", 4, ((5, 5),)))
        assert len(gaps(stack_with(line, ("numbered:1", {"_kind": "numbered"}), ("numbered:1", None)))) == 1
