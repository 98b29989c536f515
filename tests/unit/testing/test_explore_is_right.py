"""`explore` never accuses a correct application, finds a planted mistake in each, and leaves no outcome out."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from exactlyonce import ConfigurationError
from exactlyonce.effects.library import FindPages, WritePage
from exactlyonce.protocols.outbox.draft import MOST_MARKS
from exactlyonce.records.library import BOOK_DIGITS
from exactlyonce.records.outbox import named_after, number_of
from exactlyonce.testing import Explored, InvariantBroken, Progress, Seen, Unexplored, explore
from exactlyonce.testing.exploring.answers import Answers, Documents, transaction
from tests.unit.testing.applications import APPLICATIONS, KEYS, STRATEGIES, Account, Opened, Put, Tick

SCENES = int(os.environ.get("EXACTLYONCE_SCENES", "4"))
"""Random scenes of each application."""
MOST_STATES = int(os.environ.get("EXACTLYONCE_STATES", "600"))
"""At which a scene is given up; reminders that cross have many."""
ran: Counter[str] = Counter()


class Act(NamedTuple):
    """What happens before the exploration: a message, a request that comes twice, lost replies, or time."""

    kind: str
    put: Put
    amount: int


PUTS = st.builds(Put, key=st.sampled_from(KEYS[:2]), amount=st.integers(1, 3), to=st.sampled_from(KEYS))
SCENE = st.lists(
    st.builds(Act, st.sampled_from(["put", "put", "ask", "lose", "advance"]), PUTS, st.integers(1, 30)), max_size=4
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

    return explore(
        opened.app, [(opened.accounts, message) for message in messages], in_the_end=comes_to_the_same, **bounds
    )


def outcome(
    name: str, strategy: str, scene: list[Act], messages: list[Put], *, mistake: bool = False
) -> tuple[Any, ...]:
    """What an application comes to that takes one message after the other."""
    opened = APPLICATIONS[name](strategy, mistake)
    play(opened, scene)
    for message in messages:
        opened.app.send(opened.accounts, message)
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
        if "but there are more" not in str(given_up):  # What was looked at has no story.
            raise
        ran.update(scenes=1, states=MOST_STATES, unfinished=1)


@pytest.mark.parametrize("name", APPLICATIONS)
def test_a_planted_mistake_has_a_story(name: str) -> None:
    messages = [Put(key="a", amount=2), Put(key="a")]
    right = outcome(name, "outbox", [], messages, mistake=True)
    with pytest.raises(InvariantBroken, match=r"comes_to_the_same: .* in place of") as caught:
        explored(APPLICATIONS[name]("outbox", True), messages, right)
    assert caught.value.story


def outcomes(opened: Opened, messages: list[Put], **bounds: Any) -> set[str]:
    """All outcomes that stories have."""
    found: set[str] = set()

    def look(seen: Seen) -> None:
        found.add(repr(opened.outcome(seen)))

    explore(opened.app, [(opened.accounts, message) for message in messages], in_the_end=look, **bounds)
    return found


@pytest.mark.parametrize("name", APPLICATIONS)
@settings(
    max_examples=max(2, SCENES // 2), phases=(Phase.generate,), deadline=None, suppress_health_check=list(HealthCheck)
)
@given(st.data())
def test_steps_that_are_left_out_lead_to_no_other_outcome(name: str, data: st.DataObject) -> None:
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


def test_two_that_begin_to_send_at_one_moment_have_two_channels() -> None:
    opened = APPLICATIONS["board"]("outbox", False)
    for key in KEYS:
        opened.app.send(opened.accounts, Put(key=key))
    assert opened.outcome(opened.app)[-1].shown == dict.fromkeys(KEYS, 1)


def test_pages_are_written_and_looked_for_in_an_exploration() -> None:
    opened, before = APPLICATIONS["transfers"]("outbox", False), [Put(key="a")] * (MOST_MARKS + 1)
    for number, one in enumerate(before):
        opened.app.send("accounts", one, message_id=f"m-{number}")
    right = outcome("transfers", "outbox", [], [*before, Put(key="a", amount=5), Put(key="a", amount=7)])
    effects = {type(effect) for effect in performed(opened, [Put(key="a", amount=5), Put(key="a", amount=7)], right)}
    assert {FindPages, WritePage} <= effects


def performed(opened: Opened, messages: list[Put], right: tuple[Any, ...]) -> list[Any]:
    """The effects of an exploration without a story."""
    effects: list[Any] = []
    original = Answers.to

    def to(answers: Answers, effect: Any, documents: Documents) -> Any:
        effects.append(effect)
        return original(answers, effect, documents)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Answers, "to", to)
        explored(opened, messages, right)
    return effects


def test_outputs_owed_by_a_killed_process_are_sent_in_the_exploration() -> None:
    opened = APPLICATIONS["transfers"]("outbox", False)
    right = outcome("transfers", "outbox", [], [Put(key="a")])
    opened.app.kill("before", "Publish", of=opened.accounts)
    with pytest.raises(Exception, match="killed"):
        opened.app.ask(opened.accounts, Put(key="a"), key="k")
    found = explored(opened, [], right)
    assert isinstance(found, Explored)


def test_a_message_that_is_tried_again_after_a_pause_waits_in_the_exploration() -> None:
    opened = APPLICATIONS["transfers"]("stream", False)
    opened.app.lose("reply")
    opened.app.send(opened.accounts, Put(key="b", amount=3, to="a"))
    explored(opened, [], outcome("transfers", "stream", [], [Put(key="b", amount=3, to="a")]))


def test_reminders_without_end_are_bounded_and_an_end_that_they_could_change_is_no_story() -> None:
    def explored_with(**bounds: Any) -> Explored:
        opened = APPLICATIONS["reminders"]("outbox", False)
        right = outcome("reminders", "outbox", [], [Put(key="a")])
        return explored(opened, [Put(key="a")], right, interruptions=0, **bounds)

    assert not any("Tick" in item for item in explored_with().unexplored)
    with pytest.raises(
        Unexplored, match=r"Tick would come once more, but not more than 1 releases(?s:.)*leave_out=\(Tick,\)"
    ):
        explored_with(releases=1)


def test_where_an_exploration_gives_up_it_names_the_reminder_that_goes_on_for_ever() -> None:
    opened = APPLICATIONS["reminders"]("outbox", False)
    with pytest.raises(Unexplored, match=r"leave out what goes on for ever: leave_out=\(Tick,\), or give a higher"):
        explore(opened.app, [(opened.accounts, Put(key=key)) for key in "ab"], releases=1, most_states=300)


@given(st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)), unique=True, min_size=2, max_size=9))
def test_transactions_differ_and_so_do_the_channels_that_they_begin(given_out: list[tuple[int, int]]) -> None:
    ids = [transaction(*item) for item in given_out]
    assert len({named_after(id) for id in ids}) == len(ids)
    assert {len(book) for book, _ in map(number_of, ids)} == {BOOK_DIGITS}


def test_messages_that_are_left_out_are_not_delivered_and_the_result_says_so() -> None:
    opened = APPLICATIONS["reminders"]("outbox", False)
    found = explore(
        opened.app,
        [(opened.accounts, Put(key="a"))],
        lambda seen: (seen.state(opened.accounts, "a") or Account()).ticks == 0,
        leave_out=(Tick,),
    )
    assert "Tick, which was left out" in found.unexplored
    assert "Not explored: Tick, which was left out; more than 1 fault or 1 interruption" in str(found)
    everything = explore(opened.app, [(opened.accounts, Put(key="a"))], leave_out=(opened.accounts,))
    assert (everything.states, everything.unexplored[0]) == (1, "Put, which was left out")
    with pytest.raises(ConfigurationError, match="'board', which is no entity type of this application"):
        explore(opened.app, [], leave_out=(APPLICATIONS["board"]("outbox", False).compared[-1][0],))


def test_the_progress_is_told() -> None:
    opened, told = APPLICATIONS["transfers"]("outbox", False), list[Progress]()
    found = explore(opened.app, [(opened.accounts, Put(key="a"))], progress=told.append)
    assert (told[-1].states, told[-1].depth) == (found.states, found.depth)
    assert str(Progress(3_000, 7, 2.0)) == "explore: 3,000 states, 7 steps deep, 1,500 states a second"


@pytest.mark.parametrize("scene", ["", "a", "ba", "ab", "baa"])
def test_an_old_version_never_has_the_etag_of_a_newer_one(scene: str) -> None:
    opened = APPLICATIONS["counter"]("outbox", False)
    for key in scene:
        opened.app.send(opened.accounts, Put(key=key))
    messages = [Put(key="a"), Put(key="a")]
    explored(opened, messages, outcome("counter", "outbox", [], [*(Put(key=key) for key in scene), *messages]))
