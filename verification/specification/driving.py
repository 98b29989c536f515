"""Drives generators through every reply, and keeps what was seen at each place in the code."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from exactlyonce import Resequencer
from exactlyonce.attempt import Again, Finished, Settled
from exactlyonce.effects.effect import Effect, Together
from exactlyonce.effects.library import Closed, FoundRequests
from exactlyonce.errors import HandlerError, NonDeterministicHandler
from exactlyonce.protocols.outbox.clean import Cleaned
from exactlyonce.protocols.outbox.requests import Opened
from exactlyonce.protocols.steps.clean_blobs import CleanedBlobs
from exactlyonce.protocols.steps.give_back import Returned
from exactlyonce.protocols.steps.park import Renewed, Requeued
from exactlyonce.protocols.stream.replay import Replayed, versions_of
from verification.specification.places import Place, place_of
from verification.specification.playing import Occasion, Start
from verification.specification.replies import options
from verification.specification.stored import Stored
from yieldcheck.situations import Situation, Situations


@dataclass(frozen=True, slots=True, order=True)
class Outcome:
    """How an attempt ends.

    Attributes:
        kind: `finished`, `again` or `raises`.
        what: what finished, the reason of `Again`, or the error's name.
    """

    kind: str
    what: str


NOTHING_LEFT: Final = "nothing left to do"
RELEASING: Final = (Resequencer.attempt, Resequencer.tend, Resequencer.sweep)

Target = Place | Outcome
Crash = tuple[Occasion, Stored]
"""Where an attempt began, and what was stored when it died."""


@dataclass(slots=True)
class Seen:
    """What was seen at one place.

    Attributes:
        place: of the step.
        presets: that come here.
        after: for each kind of reply where it led.
        before: what may be stored when an attempt dies here, if its request took no effect.
        applied: what may be stored then, if the request took effect.
    """

    place: Place
    presets: dict[str, None] = field(default_factory=dict)
    after: dict[str, set[Target]] = field(default_factory=dict)
    before: set[Crash] = field(default_factory=set)
    applied: set[Crash] = field(default_factory=set)

    def add(self, other: Seen) -> None:
        """Take what was seen at the same place in another part."""
        self.presets |= other.presets
        for kind, targets in other.after.items():
            self.after.setdefault(kind, set()).update(targets)
        self.before |= other.before
        self.applied |= other.applied


class Driven:
    """All that was seen.

    Attributes:
        steps: by place, in the order of the code.
        begins: the steps that come first.
        given: replies given to each kind of effect: members of enumerations and booleans themselves, else their classes.
    """

    def __init__(self, occasions: Iterable[Occasion]) -> None:
        self._situations: Situations[Start] = Situations(Start.run)
        self._places: dict[int, Place] = {}
        self._seen: dict[Place, Seen] = {}
        self._done: set[tuple[Situation[Start], Stored]] = set()
        self.begins: set[Target] = set()
        self.given: dict[type[Effect[Any]], set[Any]] = {}
        for occasion in dict.fromkeys(occasions):
            self._done.clear()
            self.begins.add(self._walk(occasion, self._situations.first(occasion.start), occasion.stored))
        self.steps = dict(sorted(self._seen.items()))

    def _walk(self, occasion: Occasion, situation: Situation[Start], stored: Stored) -> Target:
        """Go on from a situation in all ways; return what it is."""
        if situation.request is None:
            return outcome_of(situation.start, situation.result)
        place = self._place(situation)
        if (situation, stored) in self._done:
            return place
        self._done.add((situation, stored))
        seen = self._seen.setdefault(place, Seen(place))
        seen.presets.setdefault(occasion.preset)
        seen.before.add((occasion, stored))
        for option in options(situation.request, stored):
            self._note(situation.request, option.reply)
            if option.stored != stored:
                seen.applied.add((occasion, option.stored))
            following = self._situations.after(situation, option.reply)
            target = self._walk(occasion, following, option.stored)
            seen.after.setdefault(option.kind, set()).add(target)
        return place

    def _note(self, effect: Effect[Any], reply: Any) -> None:
        if isinstance(effect, Together):
            for one, answer in zip((effect.first, effect.second), reply, strict=True):
                self._note(one, answer)
        else:
            exact = reply is None or isinstance(reply, Enum | bool)
            self.given.setdefault(type(effect), set()).add(reply if exact else type(reply))

    def _place(self, situation: Situation[Start]) -> Place:
        found = self._places.get(id(situation))
        if found is None:
            assert situation.program is not None  # noqa: S101  # It has been sent no reply yet.
            found = self._places[id(situation)] = place_of(situation.program, situation.request)
        return found


def outcome_of(start: Start, result: Any) -> Outcome:  # noqa: C901, PLR0912  # One row for each result.
    """How an attempt ended."""
    match result:
        case Again():
            return Outcome("again", result.reason)
        case Exception():
            return Outcome("raises", type(result).__name__)
        case Finished():
            finished = _finished(result)
            if start.function in RELEASING and finished == NOTHING_LEFT:
                finished = "nothing more can be released"
        case Settled() | Requeued() | Renewed() | Returned():
            finished = result.outcome
        case Cleaned(garbage) | CleanedBlobs(garbage):
            finished = "deleted" if garbage else "nothing to delete"
        case True | False:
            finished = "yes" if result else "no"
        case Opened():
            finished = "opened"
        case Closed():
            finished = "closed"
        case FoundRequests():
            finished = "found" if result.documents else "not found"
        case Replayed():
            finished = ("sent" if result.sent else "nothing to send") + (
                ", and there is more" if result.following else ""
            )
        case (_, _):
            finished = "these versions"
        case None:
            finished = "no version sent them" if start.function is versions_of else "deleted, what is as it was read"
        case _:
            raise TypeError(result)
    return Outcome("finished", finished)


def _finished(result: Finished) -> str:
    if result.stopped:
        of_handlers = all(isinstance(error, HandlerError) for _, error in result.stopped)
        return "held, since a handler raised" if of_handlers else "what is gone stays kept"
    if result.processed:
        return "committed and published"
    if any(isinstance(error, NonDeterministicHandler) for _, error in result.failed):
        return "nothing sent, since the handler is not deterministic"
    return "no message can be committed" if result.failed else NOTHING_LEFT
