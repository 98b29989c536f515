"""Explores an application: all orders of its messages, and the faults between, until a story breaks an invariant."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from exactlyonce.errors import ConfigurationError
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.keys import EntityKey
from exactlyonce.handling.routes import Destination
from exactlyonce.records.ledger import read_entity
from exactlyonce.testing.app import App
from exactlyonce.testing.exploring.answers import frozen
from exactlyonce.testing.exploring.model import Application, Bounds, Move, State, Waiting
from exactlyonce.values.envelope import Envelope

EntityState = TypeVar("EntityState")
MOST_STATES: Final = 100_000
"""At which an exploration gives up, unless it is given another limit."""
_WIDTH: Final = 100


class InvariantBroken(AssertionError):
    """A story breaks an invariant, or a message fails in it.

    Attributes:
        story: the shortest there is, a line for each turn of an instance.
        states: how many states were looked at.
    """

    def __init__(self, violation: str, story: tuple[str, ...], states: int) -> None:
        lines = "\n".join(f"{number:3}. {line}" for number, line in enumerate(story, start=1))
        super().__init__(f"{violation}\nThe shortest story, found after {states:,} states:\n{lines}")
        self.story = story
        self.states = states


class Unexplored(AssertionError):
    """There are more states than the limit, so nothing is proved."""


@dataclass(frozen=True)
class Explored:
    """No story breaks an invariant.

    Attributes:
        states: how many states there are.
        steps: how many steps lead from one to another.
        depth: how many steps lead to the last state.
    """

    states: int
    steps: int
    depth: int


class Seen:
    """What anybody sees of the application at a moment of a story; the argument of an invariant."""

    def __init__(self, app: App, application: Application, state: State) -> None:
        self._app = app
        self._application = application
        self._state = state

    def state(self, entity: Entity[EntityState], key: str | EntityKey) -> EntityState | None:
        """The committed state of an entity; None if it is absent or deleted."""
        ref = entity.ref(key)
        place = ("entities", (ref.type, *ref.partition))
        log = next((log for name, log, _ in self._state.documents if name == place), ())
        document = next((one.document for one in reversed(log) if one.id == ref.id), None)
        body = read_entity(ref, document).body
        found: EntityState | None = None if body is None else entity.shape.read(ref, body)
        return found

    def __repr__(self) -> str:
        return "Seen()"

    def outputs(self, destination: str | Destination) -> tuple[Any, ...]:
        """The messages that arrived at a destination during the exploration, in the order of their ids; copies count once."""
        name = destination.name if isinstance(destination, Destination) else destination
        sent = (self._application.messages[number] for number in self._state.arrived)
        found = {(one.envelope.source, one.envelope.id): one.envelope for one in sent if one.destination == name}
        return tuple(self._app.read(found[key]) for key in sorted(found))

    def failed(self) -> tuple[Any, ...]:
        """The messages that failed, and were given up; empty unless `may_fail` allows it."""
        messages = self._application.messages
        return tuple(self._app.read(messages[number].envelope) for number in sorted(self._state.failed))


Invariant = Callable[[Seen], object]
"""Looks at a moment, and asserts; or returns False, or a sentence that says what is wrong."""


def explore(
    app: App,
    messages: Iterable[tuple[str | Destination | Entity[Any], object]],
    invariant: Invariant | None = None,
    *,
    in_the_end: Invariant | None = None,
    instances: int = 2,
    faults: int = 1,
    interruptions: int = 1,
    may_fail: bool = False,
    most_states: int = MOST_STATES,
) -> Explored:
    """Run the handlers of an application in every order, on several instances, with faults; fail with the shortest story.

    The exploration starts from what the application holds, with all messages waiting that have a delay: a delayed message
    may come at any moment, and a kept one may be released at any moment. The application itself does not change. A fault is
    a crash, a request or a reply that is lost, a read by a replica that is behind, or a copy of a message. Time stands still;
    what else the sweeper does, poison messages and requests over HTTP are left out. A call to a service gets its answer at
    any moment; that its outcome is unknown is a fault.

    Args:
        app: the application, in the state from which to start.
        messages: each with its destination, or the entity type that takes it. They wait in their queues, in no order.
        invariant: holds at every moment; None for none. That no message fails always holds, unless `may_fail` says otherwise.
        in_the_end: holds once all messages are processed; None for none.
        instances: processes that take messages.
        faults: most faults of a story.
        interruptions: how often in a story an instance may go on while another is in the middle of its work.
        may_fail: whether a handler may raise. Its message is given up then; one that met a replica that is behind comes again.
        most_states: most states to look at.

    Raises:
        InvariantBroken: with the story.
        Unexplored: there are more states than `most_states`.
        ConfigurationError: nobody takes a message; or yieldcheck is missing.
    """
    try:
        from yieldcheck import check  # noqa: PLC0415  # Nothing else needs it.
    except ImportError:
        raise ConfigurationError(
            "explore(...) needs the package yieldcheck, which exactlyonce-dev brings: install it."
        ) from None

    bounds = Bounds(instances, faults, interruptions, may_fail)
    application = _application(app, bounds, invariant, in_the_end)
    application.begin(frozen(app.host.accounts.documents), _waiting(app, messages))
    report = check(application, most_states)
    if report.violation is not None:
        raise InvariantBroken(report.violation, _told(report.path), report.states)
    if not report.complete:
        raise Unexplored(
            f"No story breaks an invariant within {report.states:,} states, but there are more. Give fewer messages, faults "
            f"({faults}) or interruptions ({interruptions}), or a higher most_states ({most_states:,})."
        )
    return Explored(report.states, report.transitions, report.depth)


def _application(app: App, bounds: Bounds, invariant: Invariant | None, in_the_end: Invariant | None) -> Application:
    """The model of an application, judged by these invariants."""
    known: dict[object, str | None] = {}

    def judge(state: State) -> str | None:
        over = application.is_good_end(state)
        moment = over, state.documents, state.arrived, state.failed
        if moment not in known:  # Also so that a moment is judged in the same words again.
            seen = Seen(app, application, state)
            known[moment] = _broken(invariant, seen) or (_broken(in_the_end, seen) if over else None)
        return known[moment]

    application = Application(
        routes=app.host.parts.routes,
        lifetimes=app.host.accounts.ownership.lifetimes(),
        entities={entity.name: entity for entity in app.once.entities},
        takers=app.host.takers,
        replies=partial(_replies, app),
        now=app.now,
        show=lambda envelope: _shortened(repr(app.read(envelope))),
        judge=judge,
        bounds=bounds,
    )
    return application


def _waiting(app: App, messages: Iterable[tuple[str | Destination | Entity[Any], object]]) -> list[Waiting]:
    """The messages that wait at the start: those with a delay, and those that are given."""
    waiting: list[Waiting] = []
    for one in (*app.host.delayed, *app.host.calling):
        if one.entity is None:
            waiting += _replies(app, one.destination, one.envelope)[:1]
        else:
            waiting.append(Waiting(one.destination, one.entity, one.envelope))
    for to, message in messages:
        name = to if isinstance(to, str) else to.name
        waiting.append(Waiting(name, app.taker(to), app.envelope(message)))
    return waiting


def _replies(app: App, destination: str, envelope: Envelope) -> tuple[Waiting, ...]:
    """The replies that a message in a queue may get, most likely first; none for one that is no call."""
    if destination not in app.host.apis:
        return ()
    replies = app.host.loop.run(app.host.replies(destination, envelope))
    takers = app.host.takers
    return tuple(
        Waiting(one.destination, takers[one.destination], Envelope.read(one.envelope.text))
        for one in replies
        if one.destination in takers
    )


def _broken(invariant: Invariant | None, seen: Seen) -> str | None:
    """What an invariant says against a moment."""
    if invariant is None:
        return None
    name = getattr(invariant, "__name__", repr(invariant))
    try:
        verdict = invariant(seen)
    except AssertionError as error:
        return f"{name}: {error}" if str(error) else f"{name} does not hold."
    if verdict is False:
        return f"{name} does not hold."
    return f"{name}: {verdict}" if isinstance(verdict, str) and verdict else None


def _told(path: Iterable[Move]) -> tuple[str, ...]:
    """The story of a path: a line for each message that an instance takes, and for each time that it goes on with one."""
    lines: list[str] = []
    last: int | None = None
    for move in path:
        if move.instance == last and not move.takes:
            lines[-1] += f", {move.said}"
        else:
            lines.append(f"instance {move.instance + 1} {move.said}")
        last = move.instance
    return tuple(lines)


def _shortened(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
