"""Explores an application: all orders of its messages, and the faults between, until a story breaks an invariant."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, starmap
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from exactlyonce.errors import ConfigurationError
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.messages import EntityKey, message_type
from exactlyonce.handling.routes import Destination
from exactlyonce.records.ledger import read_entity
from exactlyonce.testing.app import App
from exactlyonce.testing.exploring.messages import LeftOut, Waiting
from exactlyonce.testing.exploring.model import Application, Bounds, Move, State
from exactlyonce.values.envelope import Envelope

if TYPE_CHECKING:
    from yieldcheck import Report

EntityState = TypeVar("EntityState")
MOST_STATES: Final = 100_000
"""At which an exploration gives up, unless it is given another limit."""
_WIDTH: Final = 100
_NAMED: Final = 3  # Message types that are named where an exploration gives up.
_PRINTED_EVERY: Final = 3.0  # Seconds.


class InvariantBroken(AssertionError):
    """A story breaks an invariant, or a message fails in it.

    Attributes:
        story: the shortest there is, a line for each turn of an instance.
        states: how many states were looked at.
    """

    def __init__(self, violation: str, story: tuple[str, ...], states: int) -> None:
        super().__init__(f"{violation}\nThe shortest story, found after {states:,} states:\n{_numbered(story)}")
        self.story = story
        self.states = states


class Unexplored(AssertionError):
    """Nothing is proved: there are more states than the limit, or no story ends within the bounds as `in_the_end` wants it."""


@dataclass(frozen=True)
class Explored:
    """No story breaks an invariant.

    Attributes:
        states: how many states were looked at.
        steps: how many steps lead from one to another.
        depth: how many steps lead to the last state.
        unexplored: what was not explored, a phrase for each.
    """

    states: int
    steps: int
    depth: int
    unexplored: tuple[str, ...]

    def __str__(self) -> str:
        return f"No story breaks an invariant, in {self.states:,} states. Not explored: {'; '.join(self.unexplored)}."


@dataclass(frozen=True)
class Progress:
    """How far an exploration is.

    Attributes:
        states: how many were looked at.
        depth: how many steps lead to the latest of them.
        seconds: since the exploration began.
    """

    states: int
    depth: int
    seconds: float

    def __str__(self) -> str:
        rate = self.states / max(self.seconds, 0.001)
        return f"explore: {self.states:,} states, {self.depth} steps deep, {rate:,.0f} states a second"


class Seen:
    """What anybody sees of the application at a moment of a story; the argument of an invariant."""

    def __init__(self, app: App, application: Application, state: State) -> None:
        self._app = app
        self._application = application
        self._state = state

    def state(self, entity: Entity[EntityState], key: str | EntityKey) -> EntityState | None:
        """The committed state of an entity; None if it is absent or deleted."""
        ref = entity.ref(key)
        body = read_entity(ref, self._state.documents.newest(ref)).body
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
    releases: int = 2,
    leave_out: Iterable[type | Entity[Any]] = (),
    may_fail: bool = False,
    most_states: int = MOST_STATES,
    progress: Callable[[Progress], None] | None = None,
    reduced: bool = True,
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
        interruptions: how often in a story an instance takes a message, or goes on, while another is in the middle of its work.
        releases: how often a message that comes later than it was sent (`at=`, `delay=`) may follow from others of its type. A
            reminder that sets the next one would go on for ever.
        leave_out: message types, and entity types, whose messages are not delivered.
        may_fail: whether a handler may raise. Its message is given up then; one that met a replica that is behind comes again.
        most_states: most states to look at.
        progress: called every two thousand states, and after each step deeper. None prints a line every few seconds to stderr
            if that is a terminal.
        reduced: whether to leave out what leads to nothing new. False is for tests of `explore`.

    Returns:
        How much was explored, and what was not.

    Raises:
        InvariantBroken: with the story.
        Unexplored: there are more states than `most_states`; or `in_the_end` does not hold, but might after more `releases`.
        ConfigurationError: nobody takes a message; `leave_out` names what is no type of messages or of this application's
            entities; or yieldcheck is missing.
    """
    bounds = Bounds(instances, faults, interruptions, may_fail, releases, _left_out(app, leave_out), reduced)
    exploration = _Exploration(app, messages, bounds, _Judge(app, invariant, in_the_end))
    return exploration.run(most_states, progress or _Line())


def _left_out(app: App, types: Iterable[type | Entity[Any]]) -> LeftOut:
    types = tuple(types)
    entities = {one.name for one in types if isinstance(one, Entity)}
    if unknown := entities - {one.name for one in app.once.entities}:
        raise ConfigurationError(f"leave_out= names {min(unknown)!r}, which is no entity type of this application.")
    return LeftOut(
        frozenset(message_type(one).name for one in types if not isinstance(one, Entity)), frozenset(entities)
    )


class _Line:
    """Prints the progress to stderr, if that is a terminal: a line every few seconds."""

    def __init__(self) -> None:
        self._next = _PRINTED_EVERY

    def __call__(self, progress: Progress) -> None:
        if progress.seconds >= self._next and sys.stderr.isatty():
            self._next = progress.seconds + _PRINTED_EVERY
            print(progress, file=sys.stderr)


class _Judge:
    """Says what is wrong with a state.

    Args:
        app: that is explored.
        invariant, in_the_end: as for `explore`.

    Attributes:
        application: whose states it judges.
        ends: whether a story has come to its end, or need not, without an `in_the_end`.
        doubts: whether `in_the_end` did not hold where a message still waits that would be one release too many.
    """

    application: Application

    def __init__(self, app: App, invariant: Invariant | None, in_the_end: Invariant | None) -> None:
        self._app = app
        self._invariant = invariant
        self._in_the_end = in_the_end
        self._accusing = False
        self._known: dict[object, str | None] = {}
        self.ends = in_the_end is None
        self.doubts = False

    def accuse(self) -> None:
        """From now on `in_the_end` has to hold there, too."""
        self._accusing = True
        self._known.clear()

    def __call__(self, state: State) -> str | None:
        over = self.application.is_good_end(state)
        cut_off = over and self.application.is_cut_off(state)
        moment = over, cut_off, state.documents, state.arrived, state.failed
        if moment not in self._known:  # Also so that a moment is judged in the same words again.
            self._known[moment] = self._judged(Seen(self._app, self.application, state), over=over, cut_off=cut_off)
        return self._known[moment]

    def _judged(self, seen: Seen, *, over: bool, cut_off: bool) -> str | None:
        broken = _broken(self._invariant, seen)
        if broken is not None or not over:
            return broken
        self.ends = True
        broken = _broken(self._in_the_end, seen)
        if broken is None or not cut_off or self._accusing:
            return broken
        self.doubts = True
        return None


class _Exploration:
    """An exploration of an application: a search for each number of faults and interruptions.

    Args:
        app: that is explored.
        messages: that wait, besides those of the application.
        bounds: of the exploration.
        judge: says what is wrong with a state.
    """

    def __init__(
        self,
        app: App,
        messages: Iterable[tuple[str | Destination | Entity[Any], object]],
        bounds: Bounds,
        judge: _Judge,
    ) -> None:
        try:
            from yieldcheck import check  # noqa: PLC0415  # Nothing else needs it.
        except ImportError:
            raise ConfigurationError(
                "explore(...) needs the package yieldcheck, which exactlyonce-dev brings: install it."
            ) from None
        self._check = check
        self._bounds = bounds
        self._judge = judge
        self._application = judge.application = _application(app, bounds, judge)
        self._application.begin(app.host.accounts.documents, _waiting(app, messages), app.host.has_arrived)

    def run(self, most_states: int, tell: Callable[[Progress], None]) -> Explored:
        """Search until a story breaks an invariant, or to the end."""
        began, judge, application, bounds = perf_counter(), self._judge, self._application, self._bounds

        def search(faults: int, interruptions: int) -> Report[State, Move]:
            application.allow(faults, interruptions)
            return self._check(
                application,
                most_states,
                show=lambda report: tell(Progress(report.states, report.depth, perf_counter() - began)),
                split=(lambda state: state.split) if bounds.reduced else None,
            )

        for allowed in bounds.allowed():  # The simplest stories first: one in which less goes wrong says more.
            report = search(*allowed)
            if report.violation is not None:
                raise InvariantBroken(report.violation, _told(report.path), report.states)
            if not report.complete:
                raise Unexplored(_too_many(report, application, bounds))
        if judge.doubts:
            judge.accuse()
            report = next(one for one in starmap(search, bounds.allowed()) if one.violation is not None)
            raise Unexplored(_too_short(report, application, bounds))
        if not judge.ends:
            raise Unexplored(
                "No story comes to an end, so in_the_end was never looked at: some message is tried for ever."
            )
        return Explored(report.states, report.transitions, report.depth, _unexplored(application, bounds))


def _application(app: App, bounds: Bounds, judge: _Judge) -> Application:
    """The model of an application."""
    return Application(
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


def _too_many(report: Report[State, Move], application: Application, bounds: Bounds) -> str:
    """Why a search gave up, and what makes most of its states."""
    most = report.kinds.most_common(_NAMED)
    share = round(100 * sum(count for _, count in most) / max(1, report.states))
    return (
        f"No story breaks an invariant within {report.states:,} states, but there are more. {share} % of them come from "
        f"{_list([str(kind) for kind, _ in most])}. Give fewer messages, faults ({bounds.faults}), interruptions "
        f"({bounds.interruptions}) or releases ({bounds.releases}), {_leave_out(application)}, or give a higher most_states."
    )


def _leave_out(application: Application) -> str:
    """What to leave out: messages that follow from others of their type, if there are any."""
    endless = sorted({one.kind for one in application.messages if one.beyond})
    return (
        f"leave out what goes on for ever: leave_out=({', '.join(endless)},)"
        if endless
        else "leave types out (leave_out=)"
    )


def _too_short(report: Report[State, Move], application: Application, bounds: Bounds) -> str:
    """Why an end proves nothing, with the story that leads there."""
    waiting = sorted({one.kind for one in application.messages if one.beyond})
    return (
        f"{report.violation}\nThat may be right: {_list(waiting)} would come once more, but not more than {bounds.releases} "
        "releases in a row are explored, and in_the_end may hold afterwards. Give a higher releases=; or, if in_the_end has "
        f"to hold without them, leave_out=({', '.join(waiting)},).\n{_numbered(_told(report.path))}"
    )


def _unexplored(application: Application, bounds: Bounds) -> tuple[str, ...]:
    beyond = sorted({one.kind for one in application.messages if one.beyond})
    left_out = sorted({one.kind for one in application.messages if one.left_out})
    return (
        *(f"releases of {kind} beyond {bounds.releases}" for kind in beyond),
        *(f"{kind}, which was left out" for kind in left_out),
        f"more than {_many(bounds.faults, 'fault')} or {_many(bounds.interruptions, 'interruption')} in a story",
        f"more than {_many(bounds.instances, 'instance')}",
        "the passing of time, what the sweeper does besides releases, clean-up, poison messages, and requests over HTTP",
    )


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _list(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _waiting(app: App, messages: Iterable[tuple[str | Destination | Entity[Any], object]]) -> list[Waiting]:
    """The messages that wait at the start: those that the application has yet to process, and those that are given."""
    waiting: list[Waiting] = []
    numbers = count(1)
    for one in app.host.unprocessed:
        if one.entity is None:
            waiting += _replies(app, one.destination, one.envelope)[:1]
        else:
            waiting.append(Waiting(one.destination, one.entity, one.envelope))
    for to, message in messages:
        name = to if isinstance(to, str) else to.name
        # Of a source of its own: its ids are none of those that the test has given.
        waiting.append(Waiting(name, app.taker(to), app.envelope(message, f"explored-{next(numbers)}", "explore")))
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


def _numbered(story: Iterable[str]) -> str:
    return "\n".join(f"{number:3}. {line}" for number, line in enumerate(story, start=1))


def _told(path: Iterable[Move]) -> tuple[str, ...]:
    """The story of a path: a line for each message that an instance takes, and for each time that it goes on with one."""
    lines: list[str] = []
    last: int | None = None
    for move in (one for together in path for one in (*together.before, together)):
        if move.instance == last and not move.takes:
            lines[-1] += f", {move.said}"
        else:
            lines.append(f"instance {move.instance + 1} {move.said}")
        last = move.instance
    return tuple(lines)


def _shortened(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
