"""The demo's judge acquits a game in which every shot took place once, and convicts every other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from demo.oracle import Evidence, judge
from demo.shots import Shot
from exactlyonce import Envelope
from exactlyonce.testing import run
from exactlyonce.values.frozen_json import Json
from handlers.leader_board import Score
from handlers.messages import FireAt, Hit
from handlers.shooting_range import Range, fire_at, ranges

SHOTS = tuple(Shot(f"shot-{number}", "g", 0 if number % 3 else 9, over_http=number in (3, 5)) for number in range(12))


def perfect() -> Evidence:
    """What can be seen after every shot took place once, in the order in which they were fired."""
    state, states, outcomes, score, answers = Range(), [], [], Score(), {}
    for shot in SHOTS:
        fired = FireAt(game_id="g", position=shot.position)
        ran = run(fire_at, state, fired, message_id=shot.id, source=shot.source, entity=ranges.ref("g"))
        state, outcome = ran.state, ran.messages[0]
        states.append(state)
        outcomes.append(as_envelope(outcome))
        if shot.over_http:
            assert ran.answer is not None
            answers[shot.id] = [f"{ran.answer.status} {ran.answer.body}"] * 2
        hits, misses = score.hits + isinstance(outcome, Hit), score.misses + (not isinstance(outcome, Hit))
        streak = score.streak + 1 if isinstance(outcome, Hit) else 0
        score = Score(hits=hits, misses=misses, streak=streak, best=max(score.best, streak))
    return Evidence(tuple(outcomes), {"g": tuple(states)}, {"g": score}, 0, answers)


def as_envelope(outcome: Any, **changes: Any) -> Envelope:
    name = "shooting-range.hit" if isinstance(outcome, Hit) else "shooting-range.missed"
    data = {**outcome.model_dump(), **changes}
    return Envelope("range/g", f"out-{outcome.id}", name, Json.of(data))


def changed(envelope: Envelope, **changes: Any) -> Envelope:
    return replace(envelope, data=Json.of({**envelope.data.value, **changes}))


def kinds(evidence: Evidence) -> set[str]:
    return {finding.kind for finding in judge(SHOTS, evidence)}


def test_a_game_in_which_every_shot_took_place_once_is_acquitted() -> None:
    assert judge(SHOTS, perfect()) == ()


def test_copies_of_an_outcome_are_no_fault() -> None:
    evidence = perfect()
    assert judge(SHOTS, replace(evidence, outcomes=evidence.outcomes * 2)) == ()


def test_one_write_may_hold_several_shots() -> None:
    evidence = perfect()
    assert judge(SHOTS, replace(evidence, states={"g": evidence.states["g"][2::3]})) == ()


TAMPERED: dict[str, Callable[[Evidence], Evidence]] = {
    "lost": lambda seen: replace(seen, outcomes=seen.outcomes[1:]),
    "ghost": lambda seen: replace(seen, outcomes=(*seen.outcomes, changed(seen.outcomes[0], id="nobody's"))),
    "contradiction": lambda seen: replace(seen, outcomes=(*seen.outcomes, changed(seen.outcomes[0], attempt=4))),
    "double": lambda seen: replace(
        seen, outcomes=(*seen.outcomes[:-1], changed(seen.outcomes[-1], round=0, attempt=0))
    ),
    "gap": lambda seen: replace(seen, outcomes=(changed(seen.outcomes[0], round=9), *seen.outcomes[1:])),
    "wrong": lambda seen: replace(
        seen, outcomes=(replace(seen.outcomes[0], type="shooting-range.hit"), *seen.outcomes[1:])
    ),
    "board": lambda seen: replace(seen, boards={"g": Score(hits=99)}),
    "poison": lambda seen: replace(seen, poison=1),
    "unanswered": lambda seen: replace(seen, answers={"shot-5": seen.answers["shot-5"]}),
    "answer": lambda seen: replace(seen, answers={**seen.answers, "shot-3": [*seen.answers["shot-3"], "422 {}"]}),
}


@pytest.mark.parametrize("kind", TAMPERED)
def test_each_violation_is_reported(kind: str) -> None:
    assert kind in kinds(TAMPERED[kind](perfect()))


def test_a_state_that_went_back_is_found() -> None:
    evidence = perfect()
    states = evidence.states["g"]
    assert "state" in kinds(replace(evidence, states={"g": (*states, states[3])}))


def test_a_state_that_no_order_leads_to_is_found() -> None:
    evidence = perfect()
    assert "state" in kinds(replace(evidence, states={"g": (*evidence.states["g"][:-1], Range(target=77, round=2))}))


def test_a_document_that_lacks_the_last_shot_is_found() -> None:
    evidence = perfect()
    assert "state" in kinds(replace(evidence, states={"g": evidence.states["g"][:-1]}))


def test_a_board_that_counted_right_but_in_another_order_is_found() -> None:
    evidence = perfect()
    right = evidence.boards["g"]
    assert right.best > 1
    for wrong in (replace_score(right, best=right.best - 1), replace_score(right, streak=right.streak + 1)):
        assert kinds(replace(evidence, boards={"g": wrong})) == {"board"}


def replace_score(score: Score, **changes: int) -> Score:
    return score.model_copy(update=changes)


def test_in_which_order_the_audience_hears_of_the_outcomes_does_not_matter() -> None:
    evidence = perfect()
    assert judge(SHOTS, replace(evidence, outcomes=evidence.outcomes[::-1])) == ()
