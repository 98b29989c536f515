"""Explores an application: runs all orders of its messages, with faults, until a story breaks an invariant."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import starmap
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from exactlyonce.errors import ConfigurationError
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.messages import EntityKey, message_type
from exactlyonce.handling.routes import Destination
from exactlyonce.records.ledger import read_entity
from exactlyonce.testing.app import App
from exactlyonce.testing.exploring.messages import LeftOut, waiting_in
from exactlyonce.testing.exploring.model import Application, Bounds, Move, State

if TYPE_CHECKING:
    from yieldcheck import Report

EntityState = TypeVar("EntityState")
MOST_STATES: Final = 100_000
"""Default limit of states, at which an exploration gives up."""
_NAMED: Final = 3  # Message types that an exploration names on giving up.
_PRINTED_EVERY: Final = 3.0  # Seconds.


class InvariantBroken(AssertionError):
    """A story breaks an invariant, or a message fails.

    Attributes:
        story: the shortest story, a line for each turn of an instance.
        states: number of explored states.
    """

    def __init__(self, violation: str, story: tuple[str, ...], states: int) -> None:
        super().__init__(f"{violation}\nThe shortest story, found after {states:,} states:\n{_numbered(story)}")
        self.story = story
        self.states = states


class Unexplored(AssertionError):
    """Nothing is proved: there are more states than the limit, or no story ends within the bounds as `in_the_end` demands."""


@dataclass(frozen=True)
class Explored:
    """No story breaks an invariant.

    Attributes:
        states: number of explored states.
        steps: number of steps between states.
        depth: number of steps to the last state.
        unexplored: a phrase for each limit of the exploration.
    """

    states: int
    steps: int
    depth: int
    unexplored: tuple[str, ...]

    def __str__(self) -> str:
        return f"No story breaks an invariant, in {self.states:,} states. Not explored: {'; '.join(self.unexplored)}."


@dataclass(frozen=True)
class Progress:
    """The progress of an exploration.

    Attributes:
        states: number of explored states.
        depth: number of steps to the latest state.
        seconds: seconds since the start.
    """

    states: int
    depth: int
    seconds: float

    def __str__(self) -> str:
        rate = self.states / max(self.seconds, 0.001)
        return f"explore: {self.states:,} states, {self.depth} steps deep, {rate:,.0f} states a second"


class Seen:
    """The visible part of the application at a moment of a story; the argument of an invariant."""

    def __init__(self, app: App, application: Application, state: State) -> None:
        self._app = app
        self._application = application
        self._state = state

    def state(self, entity: Entity[EntityState], key: str | EntityKey) -> EntityState | None:
        """The committed state of an entity; None for an absent or deleted entity."""
        ref = entity.ref(key)
        body = read_entity(ref, self._state.documents.newest(ref)).body
        committed: EntityState | None = None if body is None else entity.shape.read(ref, body)
        return committed

    def __repr__(self) -> str:
        return "Seen()"

    def outputs(self, destination: str | Destination) -> tuple[Any, ...]:
        """The messages that arrived at a destination during the exploration, in the order of their ids; copies count once."""
        name = destination.name if isinstance(destination, Destination) else destination
        sent = (self._application.messages[number] for number in self._state.arrived)
        envelopes = {
            (item.envelope.source, item.envelope.id): item.envelope for item in sent if item.destination == name
        }
        return tuple(self._app.read(envelopes[key]) for key in sorted(envelopes))

    def failed(self) -> tuple[Any, ...]:
        """The messages that failed and were given up; empty without `may_fail`."""
        messages = self._application.messages
        return tuple(self._app.read(messages[number].envelope) for number in sorted(self._state.failed))


Invariant = Callable[[Seen], object]
"""Looks at a moment, and asserts; or returns False, or a sentence with the fault."""


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

    The exploration starts from the stored documents of the application, with all delayed messages waiting: a delayed message
    may come, and a kept message may be released, at any moment. The application itself does not change. A fault is a crash, a
    lost request or reply, a read by a lagging replica, or a copy of a message. Time stands still. Poison messages, requests
    over HTTP and all work of the sweeper except releases are left out. A call to a service gets its answer at any moment; an
    unknown outcome of a call is a fault.

    Args:
        app: the application, in the state from which to start.
        messages: messages, each with its destination or entity type. They wait in their queues, in no order.
        invariant: holds at every moment; None for no invariant. Without `may_fail`, every message also has to succeed.
        in_the_end: holds once all messages are processed; None for no invariant.
        instances: processes that take messages.
        faults: most faults in a story.
        interruptions: how often in a story an instance takes a message, or goes on, in the middle of another instance's work.
        releases: how often delayed messages (`at=`, `delay=`) of a type may follow from each other. A reminder that sets the
            next reminder would go on for ever.
        leave_out: message types, and entity types, whose messages are not delivered.
        may_fail: whether a handler may raise. Then the message is given up; after a read by a lagging replica it comes again.
        most_states: limit of explored states.
        progress: called every two thousand states, and at each further step of depth. None prints a line every few seconds to
            stderr on a terminal.
        reduced: whether to leave out steps without new results. False is for tests of `explore`.

    Returns:
        The size of the exploration, and its limits.

    Raises:
        InvariantBroken: with the story.
        Unexplored: there are more states than `most_states`; or `in_the_end` does not hold, but might after more `releases`.
        ConfigurationError: a message has no entity type; `leave_out` names neither a message type nor an entity type of this
            application; or yieldcheck is missing.
    """
    bounds = Bounds(instances, faults, interruptions, may_fail, releases, _left_out(app, leave_out), reduced)
    judge = _Judge(app, invariant, in_the_end)
    application = Application(app, waiting_in(app, messages), judge, bounds)
    return _explored(application, bounds, judge, most_states, progress or _Line())


def _explored(
    application: Application, bounds: Bounds, judge: _Judge, most_states: int, tell: Callable[[Progress], None]
) -> Explored:
    """Search for each number of faults and interruptions, until a story breaks an invariant, or to the end."""
    from yieldcheck import check  # noqa: PLC0415  # As for the application.

    began = perf_counter()

    def search(faults: int, interruptions: int) -> Report[State, Move]:
        application.allow(faults, interruptions)
        return check(
            application,
            most_states,
            show=lambda report: tell(Progress(report.states, report.depth, perf_counter() - began)),
            split=(lambda state: state.split) if bounds.reduced else None,
        )

    for allowed in bounds.allowed():  # The simplest stories first: a story with fewer faults says more.
        report = search(*allowed)
        if report.violation is not None:
            raise InvariantBroken(report.violation, _told(report.path), report.states)
        if not report.complete:
            raise Unexplored(_too_many(report, application, bounds))
    if judge.doubts:
        judge.accuse()
        report = next(item for item in starmap(search, bounds.allowed()) if item.violation is not None)
        raise Unexplored(_too_short(report, application, bounds))
    if not judge.ends:
        raise Unexplored("No story comes to an end, so in_the_end was never looked at: some message is tried for ever.")
    return Explored(report.states, report.transitions, report.depth, _unexplored(application, bounds))


def _left_out(app: App, types: Iterable[type | Entity[Any]]) -> LeftOut:
    types = tuple(types)
    entities = {kind.name for kind in types if isinstance(kind, Entity)}
    if unknown := entities - {entity.name for entity in app.once.entities}:
        raise ConfigurationError(f"leave_out= names {min(unknown)!r}, which is no entity type of this application.")
    return LeftOut(
        frozenset(message_type(kind).name for kind in types if not isinstance(kind, Entity)), frozenset(entities)
    )


class _Line:
    """Prints progress to stderr, a line every few seconds, if stderr is a terminal."""

    def __init__(self) -> None:
        self._next = _PRINTED_EVERY

    def __call__(self, progress: Progress) -> None:
        if progress.seconds >= self._next and sys.stderr.isatty():
            self._next = progress.seconds + _PRINTED_EVERY
            print(progress, file=sys.stderr)


class _Judge:
    """Judges states.

    Attributes:
        ends: whether a story has ended, or there is no `in_the_end`.
        doubts: whether `in_the_end` failed in a state with a waiting message beyond the limit of releases.
    """

    def __init__(self, app: App, invariant: Invariant | None, in_the_end: Invariant | None) -> None:
        self._app = app
        self._invariant = invariant
        self._in_the_end = in_the_end
        self._accusing = False
        self._known: dict[object, str | None] = {}
        self.ends = in_the_end is None
        self.doubts = False

    def accuse(self) -> None:
        """From now on `in_the_end` has to hold in states of doubt, too."""
        self._accusing = True
        self._known.clear()

    def __call__(self, application: Application, state: State) -> str | None:
        over = application.is_good_end(state)
        cut_off = over and application.is_cut_off(state)
        moment = over, cut_off, state.documents, state.arrived, state.failed
        if moment not in self._known:  # A repeated moment also gets the same words.
            self._known[moment] = self._judged(Seen(self._app, application, state), over=over, cut_off=cut_off)
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


def _too_many(report: Report[State, Move], application: Application, bounds: Bounds) -> str:
    """The reason for giving up a search, and the message types with most of the states."""
    most = report.kinds.most_common(_NAMED)
    share = round(100 * sum(count for _, count in most) / max(1, report.states))
    return (
        f"No story breaks an invariant within {report.states:,} states, but there are more. {share} % of them come from "
        f"{_list([str(kind) for kind, _ in most])}. Give fewer messages, faults ({bounds.faults}), interruptions "
        f"({bounds.interruptions}) or releases ({bounds.releases}), {_leave_out(application)}, or give a higher most_states."
    )


def _leave_out(application: Application) -> str:
    """Advice on messages to leave out: those that follow from others of their type, if there are any."""
    endless = _beyond(application)
    return (
        f"leave out what goes on for ever: leave_out=({', '.join(endless)},)"
        if endless
        else "leave types out (leave_out=)"
    )


def _too_short(report: Report[State, Move], application: Application, bounds: Bounds) -> str:
    """The reason why an end proves nothing, with the story of that end."""
    waiting = _beyond(application)
    return (
        f"{report.violation}\nThat may be right: {_list(waiting)} would come once more, but not more than {bounds.releases} "
        "releases in a row are explored, and in_the_end may hold afterwards. Give a higher releases=; or, if in_the_end has "
        f"to hold without them, leave_out=({', '.join(waiting)},).\n{_numbered(_told(report.path))}"
    )


def _unexplored(application: Application, bounds: Bounds) -> tuple[str, ...]:
    left_out = sorted({message.kind for message in application.messages if message.left_out})
    return (
        *(f"releases of {kind} beyond {bounds.releases}" for kind in _beyond(application)),
        *(f"{kind}, which was left out" for kind in left_out),
        f"more than {_many(bounds.faults, 'fault')} or {_many(bounds.interruptions, 'interruption')} in a story",
        f"more than {_many(bounds.instances, 'instance')}",
        "the passing of time, what the sweeper does besides releases, clean-up, poison messages, and requests over HTTP",
    )


def _beyond(application: Application) -> list[str]:
    """The types whose messages wait beyond the limit of releases."""
    return sorted({message.kind for message in application.messages if message.beyond})


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _list(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _broken(invariant: Invariant | None, seen: Seen) -> str | None:
    """The objection of an invariant to a moment; None without one."""
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
    """The story of a path: a line for each message that an instance takes, and for each time of going on."""
    lines: list[str] = []
    last: int | None = None
    for move in (item for together in path for item in (*together.before, together)):
        if move.instance == last and not move.takes:
            lines[-1] += f", {move.said}"
        else:
            lines.append(f"instance {move.instance + 1} {move.said}")
        last = move.instance
    return tuple(lines)
