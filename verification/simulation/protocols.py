"""What is simulated: the shipped protocols, or with one of them exchanged for a broken twin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from exactlyonce import Colocated, Outbox, Resequencer, VersionStream
from exactlyonce.attempt import Strategy
from exactlyonce.drivers.book import Books
from exactlyonce.drivers.lanes import Lanes
from exactlyonce.effects.effect import Step
from exactlyonce.hosting.deliveries.receiver import Receiver
from exactlyonce.hosting.deliveries.settlement import Settler
from exactlyonce.hosting.upkeep.sweeper import Sweeper
from exactlyonce.protocols.outbox.clean import clean_staged
from exactlyonce.protocols.stream.replay import replay, versions_of
from exactlyonce.values.lifetimes import Lifetimes


def kept(lifetimes: Lifetimes, now: datetime) -> timedelta:
    """Age from which clean-up deletes records of messages."""
    return lifetimes.retention.kept(now)


@dataclass(frozen=True, slots=True)
class Protocols:
    """The generators under test, by what they are for; each as it is in `exactlyonce.protocols`.

    Attributes:
        protocol: of the tallies.
        strategies: of the tallies; one of them for each process, as settings change.
        resequencer: strategy of the boards.
        heals: whether nothing may be parked that only its environment failed.
        kept: age from which clean-up deletes records of messages.
    """

    protocol: str = "outbox"
    strategies: tuple[Strategy, ...] = (Outbox(),)
    books: type[Books] = Books
    lanes: type[Lanes] = Lanes
    receiver: type[Receiver] = Receiver
    giving_up: type[Settler] = Settler
    sweeper: type[Sweeper] = Sweeper
    heals: bool = True
    kept: Callable[[Lifetimes, datetime], timedelta] = kept
    clean_staged: Callable[..., Step[Any]] = clean_staged
    resequencer: type[Resequencer] = Resequencer
    versions_of: Callable[..., Step[Any]] = versions_of
    replay: Callable[..., Step[Any]] = replay


SNAPSHOTS: Final = (1, 3, 20)
"""How far apart whole states are: another number for each process, as settings change."""
SHIPPED: Final = Protocols()
COLOCATED: Final = Protocols("colocated", (Colocated(),))
STREAM: Final = Protocols("stream", tuple(map(VersionStream, SNAPSHOTS)))


def shipped(seed: int) -> Protocols:
    """The protocols of an episode: every other one is of outboxes."""
    return {1: COLOCATED, 3: STREAM}.get(seed % 4, SHIPPED)
