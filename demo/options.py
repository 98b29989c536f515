"""Options of a demo."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import dataclass
from typing import Literal, get_args

Transport = Literal["storage", "servicebus"]
Strategy = Literal["outbox", "colocated", "stream", "naive"]


@dataclass(frozen=True)
class Options:
    """Size and kind of a demo.

    Attributes:
        shots: distinct shots.
        games: entities they are spread over.
        faults: whether anything goes wrong.
        strategy: of the games, or a plain read-handle-write-send function for contrast.
        seed: of the shots and of the trouble.
        hosts: function hosts that share the queues.
        audit: whether the last acts audit what the game left.
        transport: storage queues, or Service Bus.
        sessions: whether Service Bus delivers the messages of a game one after the other.
        batches: whether functions take messages of Service Bus in batches.
        spark_lines: whether the steps of the Spark jobs are printed.
        ui: whether the console shows the accounts meanwhile.
    """

    shots: int = 400
    games: int = 20
    faults: bool = True
    strategy: Strategy = "outbox"
    seed: int = 1
    hosts: int = 2
    audit: bool = True
    transport: Transport = "storage"
    sessions: bool = True
    batches: bool = False
    spark_lines: bool = False
    ui: bool = False

    @property
    def disordered(self) -> bool:
        """Whether something happens to outcomes on their way to the board. The naive board has trouble enough."""
        return self.faults and self.strategy != "naive"


def parse(arguments: list[str] | None = None) -> Options:
    """Options from the command line."""
    parser = ArgumentParser(prog="python -m demo", description="Play a shooting-range game under trouble.")
    parser.add_argument("--shots", type=_positive, default=Options.shots, help="distinct shots (default %(default)s)")
    parser.add_argument(
        "--games", type=_positive, default=Options.games, help="games they are spread over (default %(default)s)"
    )
    parser.add_argument(
        "--faults", choices=("on", "off"), default="on", help="lost replies, stale reads, kills (default on)"
    )
    parser.add_argument(
        "--strategy", choices=get_args(Strategy), default="outbox", help="of the games; naive: no library, for contrast"
    )
    parser.add_argument("--seed", type=int, default=Options.seed, help="of shots and trouble (default %(default)s)")
    parser.add_argument(
        "--hosts", type=_positive, default=Options.hosts, help="function hosts side by side (default %(default)s)"
    )
    parser.add_argument("--audit", choices=("on", "off"), default="on", help="audit what the game left (default on)")
    parser.add_argument("--transport", choices=get_args(Transport), default="storage", help="(default storage)")
    parser.add_argument("--sessions", choices=("on", "off"), default="on", help="of Service Bus (default on)")
    parser.add_argument("--batches", choices=("on", "off"), default="off", help="of Service Bus (default off)")
    parser.add_argument("--spark-lines", choices=("on", "off"), default="off", help="steps of Spark jobs (default off)")
    parser.add_argument("--ui", choices=("on", "off"), default="off", help="the console in a browser (default off)")
    given = parser.parse_args(arguments)
    if (given.strategy, given.ui) == ("naive", "on"):
        parser.error("the naive handler has no application for the console to show: leave --ui out")
    if (given.strategy, given.transport) == ("naive", "servicebus"):
        parser.error("the naive handler is written for storage queues: leave --transport out")
    return Options(
        given.shots,
        given.games,
        given.faults == "on",
        given.strategy,
        given.seed,
        given.hosts,
        given.audit == "on",
        given.transport,
        given.sessions == "on",
        given.batches == "on",
        given.spark_lines == "on",
        given.ui == "on",
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number
