"""What `Outbox()` has to reach in speed, and how far it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.traffic import Load

CENTRE: Final = (64, 5)
"""In flight, and milliseconds of latency: where all contenders meet."""

FEW: Final = Load("uniform", 4, 20)
"""Where latency is everything: a message takes what its round trips take."""

BUSY: Final = Load("uniform", 4, 0)
"""Where it is nothing: a message takes what the client's CPU takes."""


@dataclass(frozen=True, slots=True)
class Target:
    """One of them.

    Attributes:
        what: that was measured, as the beginning of a sentence or a row.
        measured: what came out.
        least, most: what is wanted; None for no limit.
    """

    what: str
    measured: float
    least: float | None = None
    most: float | None = None

    @property
    def missed(self) -> bool:
        """Whether it is not what is wanted."""
        too_little = self.least is not None and self.measured < self.least
        return too_little or (self.most is not None and self.measured > self.most)

    @property
    def wanted(self) -> str:
        """What is wanted, in words."""
        limits = (("at least", self.least), ("at most", self.most))
        return " and ".join(f"{words} {limit:g}" for words, limit in limits if limit is not None) or "no limit"


def targets(result: Mapping[str, Any]) -> Iterator[Target]:
    """All of them, from the result of `benchmarks.throughput`.

    Raises:
        ValueError: something has no figure, since hardly any message was processed.
    """
    loads = result["loads"]
    uniform, hot = (loads[str(Load(workload, *CENTRE))] for workload in ("uniform", "hot"))
    speed, units = "messages/s", "request units"
    yield Target("One hot entity: messages/s, times the seven steps'", _times(hot, speed), least=10)
    yield Target("One hot entity: requests per message", hot["Outbox()"]["requests"], most=0.5)
    yield Target("Many entities: messages/s, times the seven steps'", _times(uniform, speed), least=2)
    yield Target("Many entities: request units, times the seven steps'", _times(uniform, units), most=0.6)
    what = f"p50 at {FEW.latency:g} ms and {FEW.in_flight} in flight, times the naive handler's"
    yield Target(what, _times(loads[str(FEW)], "p50 ms", "naive"), most=1.25)
    yield Target(
        "CPU time per message without latency, times the naive handler's", _times(loads[str(BUSY)], "CPU ms", "naive")
    )


def _times(load: Mapping[str, Any], what: str, other: str = "seven steps") -> float:
    """How many times as much `Outbox()` has."""
    ours, theirs = load["Outbox()"][what], load[other][what]
    if not ours or not theirs:
        raise ValueError(
            f"There is no figure for {what}: measure with more --seconds, or on a machine that is less busy."
        )
    return float(ours / theirs)
