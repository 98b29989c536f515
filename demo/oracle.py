"""The judge. It trusts neither the library nor the handlers' host: it knows which shots were fired, replays the pure handler
over them, and compares with what everybody can see: the published outcomes, the accepted writes, the documents, and what
clients were answered.

It never reads the library's own bookkeeping (`_ledger`, pages, books).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from demo.shots import Shot
from exactlyonce import Envelope
from exactlyonce.testing import run
from handlers.leader_board import Score, count_hit, count_miss
from handlers.messages import FireAt, Fired, Hit, Outcome
from handlers.shooting_range import SHOTS_IN_A_ROUND, Range, fire_at, ranges

HIT: Final = "shooting-range.hit"
"""Type of the message that a shot has hit."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What can be seen from outside.

    Attributes:
        outcomes: every message in the audience's queue.
        states: for each game its document after each accepted write, oldest first, user's properties only.
        boards: for each game its line on the leader board.
        poison: messages the host gave up on.
        answers: for each shot over HTTP what its requests were answered: status code and body.
    """

    outcomes: tuple[Envelope, ...]
    states: Mapping[str, tuple[Range, ...]]
    boards: Mapping[str, Score]
    poison: int
    answers: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that does not add up."""

    kind: str
    game: str
    detail: str


def judge(shots: Iterable[Shot], evidence: Evidence) -> tuple[Finding, ...]:
    """Everything that does not add up; nothing, if each shot took place exactly once."""
    by_game: dict[str, dict[str, Shot]] = defaultdict(dict)
    for shot in shots:
        by_game[shot.game][_outcome_id(shot)] = shot
    expected = {id for ids in by_game.values() for id in ids}
    published: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for envelope in evidence.outcomes:
        published[envelope.data.value["id"]].add((envelope.type, envelope.data.text))
    findings = [Finding("ghost", "", f"outcome {id} belongs to no shot") for id in published.keys() - expected]
    if evidence.poison:
        findings.append(Finding("poison", "", f"{evidence.poison} messages in poison queues"))
    for game, ids in by_game.items():
        findings.extend(_judge_game(game, ids, published, evidence))
        for id, shot in ids.items():
            if shot.over_http:
                findings.extend(_judge_answers(shot, published.get(id, ()), evidence.answers.get(shot.id, ())))
    return tuple(findings)


def _judge_game(
    game: str, shots: Mapping[str, Shot], published: Mapping[str, set[tuple[str, str]]], evidence: Evidence
) -> Iterable[Finding]:
    """Find the order in which the shots took place from what was published, then replay it."""
    order: dict[int, str] = {}
    for id, shot in shots.items():
        outcomes = published.get(id, set())
        if not outcomes:
            yield Finding("lost", game, f"{shot.id} has no outcome")
            continue
        if len(outcomes) > 1:
            yield Finding("contradiction", game, f"{shot.id} has {len(outcomes)} different outcomes")
        for _, text in outcomes:
            outcome = Outcome.model_validate_json(text)
            place = outcome.round * SHOTS_IN_A_ROUND + outcome.attempt
            if order.setdefault(place, id) != id:
                yield Finding("double", game, f"{shot.id} and {shots[order[place]].id} are both shot number {place}")
    state, states, score = Range(), [Range()], Score()
    for place, id in sorted(order.items()):
        if place != len(states) - 1:
            yield Finding("gap", game, f"shot number {len(states) - 1} is missing, the next is number {place}")
            break
        shot = shots[id]
        ran = _replay(state, shot)
        outcome = ran.messages[0]
        if ("hit" if isinstance(outcome, Hit) else "missed") not in {
            kind.rpartition(".")[2] for kind, _ in published[id]
        }:
            yield Finding("wrong", game, f"{shot.id} should have been a {type(outcome).__name__}")
        score = _counted(score, outcome)
        state = ran.state
        states.append(state)
    yield from _judge_states(game, states, evidence.states.get(game, ()))
    if evidence.boards.get(game, Score()) != score:
        yield Finding("board", game, f"the board says {evidence.boards.get(game)}, the outcomes say {score}")


def _judge_answers(shot: Shot, outcomes: Iterable[tuple[str, str]], answers: Sequence[str]) -> Iterable[Finding]:
    """All requests of a shot got one answer, which says what was published."""
    said = {
        f"201 {Fired(id=Outcome.model_validate_json(text).id, hit=type == HIT).model_dump_json()}"
        for type, text in outcomes
    }
    if not answers:
        yield Finding("unanswered", shot.game, f"{shot.id} has no answer")
    elif set(answers) != said:
        yield Finding("answer", shot.game, f"{shot.id} was answered {sorted(set(answers))}")


def _judge_states(game: str, replayed: list[Range], accepted: tuple[Range, ...]) -> Iterable[Finding]:
    """Each accepted write holds a state of the replay, none older than the one before; the last write holds the last."""
    reached = 0
    for state in accepted:
        later = next((place for place in range(reached, len(replayed)) if replayed[place] == state), None)
        if later is None:
            yield Finding("state", game, f"a write holds {state}, which no order of the shots leads to")
            return
        reached = later
    if reached != len(replayed) - 1:
        yield Finding("state", game, f"the document stands at shot {reached} of {len(replayed) - 1}")


def _replay(state: Range, shot: Shot) -> Any:
    fired = FireAt(game_id=shot.game, position=shot.position)
    return run(fire_at, state, fired, message_id=shot.id, source=shot.source, entity=ranges.ref(shot.game))


def _outcome_id(shot: Shot) -> str:
    """The id the handler gives the outcome; it derives from the shot alone, not from the state."""
    id: str = _replay(Range(), shot).messages[0].id
    return id


def _counted(score: Score, outcome: Outcome) -> Score:
    handler: Any = count_hit if isinstance(outcome, Hit) else count_miss
    counted: Score = run(handler, score, outcome).state
    return counted
