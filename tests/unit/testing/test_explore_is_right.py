"""`explore` never accuses a correct application, whatever its scene; it finds a planted mistake in each; and it leaves out nothing."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from exactlyonce.testing import Explored, InvariantBroken, Seen, Unexplored, explore
from tests.unit.testing.applications import APPLICATIONS, KEYS, STRATEGIES, Opened, Put

SCENES = int(os.environ.get("EXACTLYONCE_SCENES", "5"))
"""Random scenes of each application."""
MOST_STATES = int(os.environ.get("EXACTLYONCE_STATES", "1000"))
"""At which a scene is given up; reminders that cross have many."""
ran: Counter[str] = Counter()


class Act(NamedTuple):
    """What happens before the exploration: a message, a request that comes twice, lost replies, or time."""

    kind: str
    put: Put
    amount: int


PUTS = st.builds(Put, key=st.sampled_from(KEYS[:2]), amount=st.integers(1, 3), to=st.sampled_from(KEYS))
SCENE = st.lists(
    st.builds(Act, st.sampled_from(["put", "put", "ask", "lose", "advance"]), PUTS, st.integers(1, 40)), max_size=5
)
MESSAGES = st.lists(PUTS, min_size=1, max_size=2)


def play(opened: Opened, scene: list[Act]) -> None:
    """Set a scene."""
    for number, act in enumerate(scene):
        if act.kind == "advance":
            opened.app.advance(hours=act.amount)
        elif act.kind == "lose":
            opened.app.lose("reply" if act.amount % 2 else "request")
        elif act.kind == "ask" and opened.accounts.strategy.answers:
            for _ in range(2):
                opened.app.ask(opened.accounts, act.put, key=f"k-{number}")
        else:
            opened.app.send(opened.accounts, act.put)


def explored(opened: Opened, messages: list[Put], right: tuple[Any, ...], **bounds: Any) -> Explored:
    def comes_to_the_same(seen: Seen) -> object:
        outcome = opened.outcome(seen)
        return outcome == right or f"{outcome} in place of {right}"

    return explore(opened.app, [(opened.accounts, one) for one in messages], in_the_end=comes_to_the_same, **bounds)


def outcome(
    name: str, strategy: str, scene: list[Act], messages: list[Put], *, mistake: bool = False
) -> tuple[Any, ...]:
    """What an application comes to that takes one message after the other."""
    opened = APPLICATIONS[name](strategy, mistake)
    play(opened, scene)
    for one in messages:
        opened.app.send(opened.accounts, one)
    opened.app.advance(days=5)
    return opened.outcome(opened.app)


@pytest.mark.parametrize("name", APPLICATIONS)
@settings(max_examples=SCENES, phases=(Phase.generate,), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_correct_application_is_never_accused(name: str, data: st.DataObject) -> None:
    strategy, scene, messages = data.draw(st.tuples(st.sampled_from(sorted(STRATEGIES)), SCENE, MESSAGES))
    faults, interruptions = data.draw(st.sampled_from([(0, 0), (0, 1), (1, 0), (1, 1)]))
    opened = APPLICATIONS[name](strategy, False)
    play(opened, scene)
    right = outcome(name, strategy, scene, messages)
    bounds = {"faults": faults, "interruptions": interruptions, "most_states": MOST_STATES}
    try:
        found = explored(opened, messages, right, progress=lambda _: None, **bounds)
        ran.update(scenes=1, states=found.states)
    except Unexplored as given_up:
        assert "but there are more" in str(given_up)  # What was looked at has no story.
        ran.update(scenes=1, states=MOST_STATES, unfinished=1)


@pytest.mark.parametrize("name", APPLICATIONS)
def test_a_planted_mistake_has_a_story(name: str) -> None:
    messages = [Put(key="a", amount=2), Put(key="a")]
    right = outcome(name, "outbox", [], messages, mistake=True)
    with pytest.raises(InvariantBroken, match="comes_to_the_same: .* in place of") as caught:
        explored(APPLICATIONS[name]("outbox", True), messages, right)
    assert caught.value.story


def outcomes(opened: Opened, messages: list[Put], **bounds: Any) -> set[str]:
    """All outcomes that stories have."""
    found: set[str] = set()

    def look(seen: Seen) -> None:
        found.add(repr(opened.outcome(seen)))

    explore(opened.app, [(opened.accounts, one) for one in messages], in_the_end=look, **bounds)
    return found


@pytest.mark.parametrize("name", APPLICATIONS)
@settings(max_examples=max(2, SCENES // 2), phases=(Phase.generate,), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_what_is_left_out_leads_to_no_other_outcome(name: str, data: st.DataObject) -> None:
    messages, mistake = data.draw(st.tuples(MESSAGES, st.booleans()))
    strategy = data.draw(st.sampled_from(sorted(STRATEGIES)))
    opened = APPLICATIONS[name](strategy, mistake)
    bounds = {"faults": data.draw(st.integers(0, 1)), "interruptions": data.draw(st.integers(0, 1))}
    try:
        every = outcomes(opened, messages, reduced=False, most_states=8 * MOST_STATES, **bounds)
    except Unexplored:
        return  # There are too many to compare.
    assert outcomes(opened, messages, **bounds) == every
    ran.update(compared=1)


def test_a_scene_does_not_change_by_an_exploration() -> None:
    opened = APPLICATIONS["transfers"]("outbox", False)
    opened.app.send(opened.accounts, Put(key="a"))
    explore(opened.app, [(opened.accounts, Put(key="b"))])
    assert opened.outcome(opened.app) == outcome("transfers", "outbox", [Act("put", Put(key="a"), 1)], [])
    assert opened.app.envelope(Put(key="a")).id == "m-2"


def test_an_id_of_the_test_is_not_given_to_another_message() -> None:
    opened = APPLICATIONS["counter"]("outbox", False)
    opened.app.send(opened.accounts, Put(key="a"), message_id="m-1")
    opened.app.send(opened.accounts, Put(key="a"))
    assert opened.outcome(opened.app)[0].total == 2
    explored(opened, [Put(key="a")], outcome("counter", "outbox", [], [Put(key="a")] * 3))


def test_what_a_killed_process_owes_is_sent_in_the_exploration() -> None:
    opened = APPLICATIONS["transfers"]("outbox", False)
    right = outcome("transfers", "outbox", [], [Put(key="a")])
    opened.app.kill("before", "Publish", of=opened.accounts)
    with pytest.raises(Exception, match="killed"):
        opened.app.ask(opened.accounts, Put(key="a"), key="k")
    found = explored(opened, [], right)
    assert isinstance(found, Explored)
