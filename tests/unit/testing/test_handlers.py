"""The sample's business code, tested without a store, as by a user."""

from __future__ import annotations

from exactlyonce.testing import run
from handlers.leader_board import Score, count_hit, count_miss
from handlers.messages import FireAt, Hit, Missed
from handlers.shooting_range import SHOTS_IN_A_ROUND, Range, fire_at

SHOT = FireAt(game_id="g", position=7)


def test_a_shot_at_the_target_hits() -> None:
    ran = run(fire_at, Range(target=7), SHOT)
    assert isinstance(ran.messages[0], Hit)
    assert ran.state == Range(target=7, attempts=1)


def test_a_shot_next_to_the_target_misses() -> None:
    assert isinstance(run(fire_at, Range(target=8), SHOT).messages[0], Missed)


def test_the_target_moves_after_a_round() -> None:
    last = Range(target=7, attempts=SHOTS_IN_A_ROUND - 1, round=2)
    moved = run(fire_at, last, SHOT).state
    assert (moved.attempts, moved.round) == (0, 3)
    assert moved == run(fire_at, last, SHOT).state, "the same message moves it to the same place"
    assert moved.target != run(fire_at, last, SHOT, message_id="another").state.target


def test_the_board_counts_hits_and_misses() -> None:
    outcome = {"id": "1", "game_id": "g", "round": 0, "attempt": 0}
    assert run(count_hit, Score(hits=1), Hit(**outcome)).state == Score(hits=2, streak=1, best=1)
    assert run(count_miss, Score(hits=1), Missed(**outcome)).state == Score(hits=1, misses=1)


def test_a_miss_ends_a_streak_and_the_best_one_stays() -> None:
    score = Score()
    for number, hit in enumerate((True, True, False, True)):
        outcome = {"id": str(number), "game_id": "g", "round": 0, "attempt": number}
        score = run(count_hit, score, Hit(**outcome)).state if hit else run(count_miss, score, Missed(**outcome)).state
    assert score == Score(hits=3, misses=1, streak=1, best=2)
