"""All that is compared: every strategy of the library, and what a user would pick instead."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, cast

from pydantic import BaseModel

from benchmarks.competitors.handmade import Naive, ProcessedDocument
from benchmarks.competitors.seven_steps import SevenSteps
from benchmarks.subjects import channel_of, dated, shooting_range, subjects
from exactlyonce import Context, Destination, Entity, Envelope, message
from exactlyonce.effects.attempt import Attempts, Strategy
from exactlyonce.handling.routes import Routes
from exactlyonce.records.outbox import Place
from exactlyonce.transports.port import MemoryTransport
from exactlyonce.values.frozen_json import Json
from handlers.leader_board import boards, leader_board
from handlers.shooting_range import Range

LARGE_BYTES: Final = 40_000
"""Of the output of a `FullReport`: more than `Outbox()` keeps in the document."""


@message("bench.report-in-full")
class ReportInFull(BaseModel):
    """Somebody wants to know everything about a game."""

    game_id: str


@message("bench.full-report")
class FullReport(BaseModel):
    """Everything about a game."""

    text: str


reports: Final = Destination("reports")
ROUTES: Final = Routes.to(
    (leader_board, reports),
    dict.fromkeys((leader_board.name, reports.name), MemoryTransport().max_bytes),
    blobs="https://blobs.example/blobs",
)


@dataclass(frozen=True)
class Contender:
    """One of those that are compared.

    Attributes:
        name: in the result.
        entity: the entity type, with its strategy.
        timed: whether its messages carry a stable time.
        numbered: whether its messages come in a channel, with numbers.
        lanes: whether messages for one entity take turns within a process.
    """

    name: str
    entity: Entity[Any]
    timed: bool = False
    numbered: bool = False
    lanes: bool = True

    @property
    def reports(self) -> bool:
        """Whether it takes `ReportInFull`, whose outputs are large."""
        return self.entity is not boards

    @property
    def groups(self) -> bool:
        """Whether several messages may share a commit."""
        return self.entity.strategy.group_limit > 1

    def message(self, game: str, number: int) -> Envelope:
        """The message of this number, from 1, for a game."""
        if self.entity is boards:
            missed = Json.of({"id": f"{game}-{number}", "game_id": game, "round": 0, "attempt": number})
            shot = Envelope(f"range/{game}", f"shot-{number}", "shooting-range.missed", missed)
        else:
            data = Json.of({"game_id": game, "position": number % 100})
            shot = Envelope("bench", f"{game}-shot-{number}", "shooting-range.fire-at", data)
        return self._placed(shot, game, number)

    def from_source(self, source: int, game: str, number: int) -> Envelope:
        """The message of this number that one of a game's many sources sends."""
        return replace(self.message(game, number), source=f"bench/{source}")

    def large(self, game: str, number: int) -> Envelope:
        """The message of this number, if its outputs are too large to ride in the document."""
        report = Envelope("bench", f"{game}-report-{number}", "bench.report-in-full", Json.of({"game_id": game}))
        return self._placed(report, game, number)

    def _placed(self, message: Envelope, game: str, number: int) -> Envelope:
        """The message with its time, and with its number where messages have one."""
        message = dated(message, number, timed=self.timed)
        if not self.numbered:
            return message
        place = Place(channel_of(game), self.entity.ref(game).source, number)
        return replace(message, extensions=(*place.extensions, *message.extensions))


def contenders() -> tuple[Contender, ...]:
    """All of them, the library's own first."""
    return (*own(), *competitors())


def own() -> tuple[Contender, ...]:
    """The library's strategies."""
    return (
        *(_reporting(subject.name, subject.entity, timed=subject.timed) for subject in subjects()),
        Contender("Resequencer()", boards, timed=True, numbered=True),
    )


def competitors() -> tuple[Contender, ...]:
    """What a user would pick instead. What teams write themselves has no lanes."""
    return (
        _reporting("seven steps", _ranges_of(SevenSteps())),
        _reporting("processed document", _ranges_of(ProcessedDocument()), lanes=False),
        _reporting("naive", _ranges_of(Naive()), lanes=False),
    )


def _ranges_of(attempts: Attempts) -> Entity[Range]:
    """A shooting range that nobody sweeps, settles or cleans up: attempts are all that is measured."""
    return shooting_range(cast("Strategy", attempts))


def _reporting(name: str, entity: Entity[Range], *, lanes: bool = True, timed: bool = False) -> Contender:
    """A shooting range that takes one kind of message more, whose outputs are large."""

    @entity.handles(ReportInFull, key=lambda wanted: wanted.game_id)
    def report(state: Range, wanted: ReportInFull, context: Context) -> Any:
        del wanted
        context.send(reports.name, FullReport(text="x" * LARGE_BYTES))
        return [] if entity.event_sourced else state

    return Contender(name, entity, timed, lanes=lanes)
