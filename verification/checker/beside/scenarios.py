"""Scenarios of one partition as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal

from exactlyonce.effects.effect import Step
from exactlyonce.protocols.resequencer.gaps import Rebuild
from exactlyonce.protocols.stream import replay as replaying
from verification.checker.scenarios import Budget, Scenario


@dataclass(frozen=True, slots=True)
class BesideBudget(Budget):
    """How often each thing may happen.

    Stale reads are those of companions too: what lies in one partition is as old as the replica that answers.

    Attributes:
        raising: deliveries whose handler raises in every attempt that is made for them before they are given back.
        nudges: looks at a read model in which something can be released, or a gap skipped, as a timer takes them.
        replays: sendings again of what a stream has sent: of all, or of what the scenario says is missing.
    """

    raising: int = 0
    nudges: int = 0
    replays: int = 0

    @property
    def amounts(self) -> tuple[int, ...]:
        """The amounts in the order of their fields."""
        return tuple(getattr(self, one.name) for one in fields(self))


RAISING: Final = len(fields(Budget))
NUDGES: Final = RAISING + 1
REPLAYS: Final = NUDGES + 1


@dataclass(frozen=True, slots=True)
class Message:
    """One message.

    Attributes:
        copies: how often it is delivered; 0 for one that is lost, and comes only if a read model asks for it again.
        does: what its handler does with the state. One that keeps it gives its output no number either.
        source: who sends it.
        number: its place in the sequence of its source; None where the protocol asks for none.
        raises: whether its handler may raise, if the budget has it.
        time: when it was sent, in days; None where nobody asks.
    """

    copies: int = 1
    does: Literal["changes", "keeps", "deletes"] = "changes"
    source: str = "web"
    number: int | None = None
    raises: bool = False
    time: int | None = None


@dataclass(frozen=True, slots=True)
class Menders:
    """What looks after read models and streams; as it ships, or a broken twin of it."""

    versions_of: Callable[..., Step[Any]] = replaying.versions_of
    replay: Callable[..., Step[Any]] = replaying.replay
    missing: Callable[..., replaying.Missing] = replaying.Missing


@dataclass(frozen=True, slots=True)
class BesideScenario(Scenario):
    """One world to explore completely. Make one with `scenario_of`.

    Attributes:
        messages: what is delivered.
        strategy: as it ships, or a broken twin of it.
        budget: of faults and of chores.
        apart: whether every attempt gets transaction ids of its own. Without, attempts on one version at the same messages
            get the same, so that drafts that are alike are one: at most one of them is ever committed.
        untold: whether a message that keeps the state may be processed without a trace in the store: then its output may tell
            of any state that there was. Only broken twins do that.
        sourced: whether the entity is event-sourced.
        adopted: whether the entity has a document without a ledger in the beginning, as before the library came.
        menders: what sends again what a stream has sent.
        missing: numbers, first and last, of the outputs that a stream is asked to send again; None for everything.
    """

    messages: tuple[Message, ...] = ()
    strategy: Any = None
    budget: BesideBudget = field(default_factory=BesideBudget)
    apart: bool = False
    untold: bool = False
    sourced: bool = False
    adopted: bool = False
    menders: Menders = Menders()
    missing: tuple[int, int] | None = None

    @property
    def skips(self) -> bool:
        """Whether a read model gives up on messages that do not come."""
        return getattr(self.strategy, "on_gap", "wait") == "skip"

    @property
    def mends(self) -> bool:
        """Whether a read model does something about messages that do not come."""
        return self.skips or isinstance(getattr(self.strategy, "on_gap", "wait"), Rebuild)

    @property
    def ordered(self) -> bool:
        """Whether a read model brings all its sources into one order."""
        return getattr(self.strategy, "order", "source") == "time"

    @property
    def protocol(self) -> str:
        """Which protocol it is about."""
        name: str = self.strategy.name
        return name


def scenario_of(name: str, messages: tuple[Message, ...], strategy: Any, *seen: str, **more: Any) -> BesideScenario:
    """A scenario.

    Args:
        name: for reports.
        messages: what is delivered.
        strategy: to check.
        seen: what has to be seen somewhere.
        more: other attributes of the scenario.
    """
    copies = tuple(message.copies for message in messages)
    return BesideScenario(name, copies, messages=messages, strategy=strategy, witnesses=frozenset(seen), **more)
