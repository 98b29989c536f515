"""What `Outbox()` has to reach, and how far it is. Each benchmark checks its own targets, and shows them above its figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.subjects import TIMED, UNTIMED
from benchmarks.traffic import Load

CENTRE: Final = (64, 5)
"""In flight, and milliseconds of latency: where all contenders meet."""

FEW: Final = Load("uniform", 4, 20)
"""Where latency is everything: a message takes what its round trips take."""

A_THIRD: Final = 0.333


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


def missed(targets: Iterable[Target]) -> Iterator[str]:
    """What misses its target, each in a sentence."""
    for target in targets:
        if target.missed:
            yield f"{target.what}: {target.measured:.2f}; {target.wanted} is wanted."


def cost_targets(result: Mapping[str, Any]) -> Iterator[Target]:
    """Those of requests and request units, from the result of `benchmarks.cost`."""
    contenders = result["contenders"]
    ours, untimed = contenders[TIMED], contenders[UNTIMED]
    spread = result["spread"]
    cases = (
        ("Entity known to the process", ours["first"], 1.2, 13.2),
        ("Entity unknown to the process", ours["entity unknown to the process"], 2.1, 13.2),
        ("Many entities, 16 in flight", ours["many entities"], 2.1, 13.2),
        ("One hot entity, 64 in flight", ours["hot entity"], 0.06, 1.2),
        ("One receiver of 10,000 sources, first contact", spread["10,000 sources, first contact"], 1.2, 13.2),
        ("One receiver of 10,000 sources, later", spread["10,000 sources, later"], 1.2, 13.2),
        ("Outputs of 40 KB", ours["large outputs"], 1.2, 13.2),
        ("Messages dealt to 4 instances at random", spread["dealt to 4 instances"], 2.1, 13.9),
        ("First message of an entity", ours["first of an entity"], 3.1, None),
        ("Messages without a stable time", untimed["first"], 2.2, 15.0),
        ("A duplicate, in a process that knows nothing", ours["duplicate in a fresh process"], 1, 3.3),
    )
    for what, cost, requests, units in cases:
        yield Target(f"{what}: requests", cost["requests"], most=requests)
        if units is not None:
            yield Target(f"{what}: request units", cost["request units"], most=units)
    yield Target("Clean-up: request units for each message", result["clean-up"]["request units"], most=1.0)
    yield Target(
        "Four messages in five for an unknown entity, clean-up included: request units", mixed(result), most=13.5
    )


def mixed(result: Mapping[str, Any]) -> float:
    """Request units of a message of which one in five is for an entity that the process knows, clean-up included."""
    ours = result["contenders"][TIMED]
    known, unknown = ours["first"]["request units"], ours["entity unknown to the process"]["request units"]
    return float(0.2 * known + 0.8 * unknown + result["clean-up"]["request units"])


def throughput_targets(result: Mapping[str, Any]) -> Iterator[Target]:
    """Those of speed, from the result of `benchmarks.throughput`.

    Raises:
        ValueError: something has no figure, since hardly any message was processed.
    """
    loads = result["loads"]
    uniform, hot = (loads[str(Load(workload, *CENTRE))] for workload in ("uniform", "hot"))
    speed, units = "messages/s", "request units"
    yield Target("One hot entity: messages/s, times the seven steps'", _times(hot, speed), least=10)
    yield Target("One hot entity: requests per message", hot[TIMED]["requests"], most=0.06)
    yield Target("Many entities: messages/s, times the naive handler's", _times(uniform, speed, "naive"), least=1)
    yield Target("Many entities: messages/s, times the seven steps'", _times(uniform, speed), least=3)
    yield Target("Many entities: request units, times the seven steps'", _times(uniform, units), most=A_THIRD)
    yield Target(
        "Many entities: client's CPU, times the naive handler's", _times(uniform, "CPU ms", "naive"), most=1.25
    )
    what = f"p50 at {FEW.latency:g} ms and {FEW.in_flight} in flight, times the naive handler's"
    yield Target(what, _times(loads[str(FEW)], "p50 ms", "naive"), most=0.7)


def growth_targets(result: Mapping[str, Any]) -> Iterator[Target]:
    """Those of what stays, from the result of `benchmarks.growth`."""
    kept = kept_a_message(result["strategies"][TIMED]["bytes"])
    yield Target("Bytes kept a message in the entity's document", kept["document"], most=0)
    yield Target("Bytes kept a message in pages, until they are deleted", kept["other documents"], most=50)


def kept_a_message(stored: Mapping[str, Mapping[str, int]]) -> dict[str, float]:
    """Bytes that each message leaves, of what was stored after the fewest and after the most messages."""
    fewest, most = (str(pick(map(int, stored))) for pick in (min, max))
    messages = int(most) - int(fewest)
    return {where: round((stored[most][where] - before) / messages, 2) for where, before in stored[fewest].items()}


def cpu_targets(result: Mapping[str, Any]) -> Iterator[Target]:
    """Those of the client's CPU time, from the result of `benchmarks.cpu`."""
    times = result["with the Cosmos SDK"]["median"] / result["naive with the Cosmos SDK"]["median"]
    yield Target("CPU time per message with the Cosmos SDK, times the naive handler's", times, most=1)


def peer_targets(result: Mapping[str, Any]) -> Iterator[Target]:
    """Those compared with other products, from the result of `benchmarks.peers`; none where Restate was not measured."""
    peers = result["peers"]
    ours, restate = (peers.get(name, {}).get("figures") for name in ("exactlyonce, 0 ms", "Restate"))
    if ours and restate:
        times = ours["messages/s"]["median"] / restate["messages/s"]["median"]
        yield Target("Messages/s at 0 ms, times Restate's", times, least=1.5)


def mean_trips(measured: Mapping[str, Any]) -> float:
    """Round trips before a message is sent, on average."""
    trips: Mapping[str, float] = measured["round trips"]["before sending"]
    return sum(int(number) * share for number, share in trips.items())


def _times(load: Mapping[str, Any], what: str, other: str = "seven steps") -> float:
    """How many times as much `Outbox()` has."""
    ours, theirs = load[TIMED][what], load[other][what]
    if not ours or not theirs:
        raise ValueError(
            f"There is no figure for {what}: measure with more --seconds, or on a machine that is less busy."
        )
    return float(ours / theirs)
