"""Any sequence of operations on the broker does what the reference model does.

`LOCAL_SERVICE_BUS_RUNS=1000` plays more than the suite has time for, each time others.
"""

from __future__ import annotations

import os
from itertools import count
from typing import Any
from uuid import UUID

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from local_service_bus.broker.broker import Broker
from local_service_bus.broker.messages import Content, SessionLock
from local_service_bus.broker.refusals import RefusedError
from local_service_bus.topology import Queue, Topology
from local_service_bus_tests.reference_model import LostError, MissingError, Model, Rules

RUNS = int(os.environ.get("LOCAL_SERVICE_BUS_RUNS", "0"))
STEPS = 50

texts = st.sampled_from(["a", "b", "c", "d"])
names = st.sampled_from(["one", "two", "three"])
picks = st.integers(0, 30)
rules = st.builds(
    Rules,
    lock=st.integers(2, 10),
    deliveries=st.integers(1, 3),
    lives=st.sampled_from([None, 7, 15]),
    window=st.sampled_from([None, 12]),
    buries_expired=st.booleans(),
    sessions=st.booleans(),
)


class Comparison(RuleBasedStateMachine):
    """Does everything twice: in a broker of its own, and in the model."""

    def __init__(self) -> None:
        super().__init__()
        self.time = 0.0
        self.tokens: dict[int, UUID] = {}
        self.holds: dict[str, SessionLock] = {}
        self.numbers: list[int] = []

    @initialize(given=rules)
    def begin(self, given: Rules) -> None:
        settings_of_queue = Queue(
            "q",
            lock_duration=given.lock,
            max_delivery_count=given.deliveries,
            time_to_live=given.lives,
            duplicate_window=given.window,
            dead_letter_on_expiry=given.buries_expired,
            requires_session=given.sessions,
        )
        ids = count(1)
        self.broker = Broker(Topology((settings_of_queue,)), lambda: self.time, lambda: UUID(int=next(ids)))
        self.queue, self.entrance = self.broker.queue("q"), self.broker.entrance("q")
        self.model = Model(given)

    @rule(text=texts, session=names, lives=st.sampled_from([None, None, 3, 9]), delay=st.sampled_from([0, 0, 0, 4, 11]))
    def send(self, text: str, session: str, lives: int | None, delay: int) -> None:
        expected = self.model.send(text, session, lives, delay)
        content = Content(
            payload=b"",
            message_id=text,
            session_id=session,
            time_to_live=lives,
            scheduled_for=self.time + delay if delay else None,
        )
        assert self.entrance.schedule([content]) == [expected]
        self.numbers.append(expected)

    @rule(pick=picks)
    def cancel(self, pick: int) -> None:
        number = self._number(pick)
        self._alike(lambda: self.model.cancel(number), lambda: self.entrance.cancel([number]))

    @rule(session=names)
    def receive(self, session: str) -> None:
        hold = self.holds.get(session)
        if self.model.rules.sessions and (hold is None or not hold.held):
            return
        letter = self.model.receive(session)
        stored = self.queue.receive(hold if self.model.rules.sessions else None)
        assert (stored and stored.sequence_number) == (letter and letter.number)
        if stored is not None and letter is not None and stored.token is not None and letter.holder is not None:
            self.tokens[letter.holder] = stored.token

    @precondition(lambda self: self.tokens)
    @rule(pick=picks, way=st.sampled_from(["complete", "abandon", "defer", "dead_letter"]))
    def settle(self, pick: int, way: str) -> None:
        handle, token = self._held(pick)
        ways: dict[str, Any] = {
            "complete": self.queue.complete,
            "abandon": self.queue.abandon,
            "defer": self.queue.defer,
            "dead_letter": lambda item: self.queue.dead_letter(item, "asked for", None),
        }
        self._alike(lambda: self.model.settle(handle, way), lambda: ways[way](token))

    @precondition(lambda self: self.tokens and not self.model.rules.sessions)
    @rule(pick=picks)
    def renew(self, pick: int) -> None:
        handle, token = self._held(pick)
        self._alike(lambda: self.model.renew(handle), lambda: self.queue.renew(token))

    @rule(pick=picks, session=names)
    def receive_deferred(self, pick: int, session: str) -> None:
        number, hold = self._number(pick), self.holds.get(session)
        if self.model.rules.sessions and (hold is None or not hold.held):
            return
        letter, found = self._alike(
            lambda: self.model.receive_deferred(number, session),
            lambda: self.queue.find_deferred([number], hold if self.model.rules.sessions else None),
        )
        if letter is not None:
            self.tokens[letter.holder] = found[0].token

    @precondition(lambda self: self.model.rules.sessions)
    @rule(session=names)
    def accept(self, session: str) -> None:
        expected = self.model.accept(session)
        hold = self.queue.sessions.accept(session)
        assert (hold is not None) == expected
        if hold is not None:
            self.holds[session] = hold

    @precondition(lambda self: self.model.rules.sessions)
    @rule()
    def accept_next(self) -> None:
        expected = self.model.next_session()
        hold = self.queue.sessions.accept_next()
        assert (hold and hold.session_id) == expected
        if hold is not None:
            self.model.accept(hold.session_id)
            self.holds[hold.session_id] = hold

    @rule(session=names, ends=st.booleans())
    def renew_or_close(self, session: str, ends: bool) -> None:
        hold = self.holds.get(session)
        assert (hold is not None and hold.held) == (session in self.model.held_sessions)
        if hold is None or not hold.held:
            return
        if ends:
            self.model.close(session)
            self.queue.sessions.close(hold)
        else:
            self.model.renew_session(session)
            self.queue.sessions.renew(hold)

    @rule(seconds=st.integers(1, 15))
    def pass_time(self, seconds: int) -> None:
        for _ in range(seconds):
            self.model.tick()
        self.time += seconds
        self.broker.expire()

    @invariant()
    def both_are_alike(self) -> None:
        living = [*self.queue.peek(1, 1000), *self.broker.scheduled("q")]
        seen = [
            (item.sequence_number, item.content.message_id, item.state, item.delivery_count, item.token is not None)
            for item in living
        ]
        assert sorted(seen) == self.model.seen()
        graves = self.broker.queue("q/$DeadLetterQueue").peek(1, 1000)
        dead = [
            (grave.sequence_number, grave.content.message_id, grave.death and grave.death.reason, grave.delivery_count)
            for grave in graves
        ]
        assert dead == self.model.dead()

    def _number(self, pick: int) -> int:
        return self.numbers[pick % len(self.numbers)] if self.numbers else 1

    def _held(self, pick: int) -> tuple[int, UUID]:
        """Any lock there ever was, the newest most often."""
        handles = sorted(self.tokens, reverse=True)
        handle = handles[pick % len(handles)]
        return handle, self.tokens[handle]

    def _alike(self, expected: Any, actual: Any) -> tuple[Any, Any]:
        try:
            wanted = expected()
        except (LostError, MissingError):
            wanted = None
            refused = True
        else:
            refused = False
        try:
            found = actual()
        except RefusedError:
            assert refused
            return None, None
        assert not refused
        return wanted, found


def test_any_sequence_of_operations_does_what_the_model_does() -> None:
    run_state_machine_as_test(
        Comparison,
        settings=settings(
            max_examples=RUNS or 100,
            stateful_step_count=STEPS,
            derandomize=not RUNS,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
