"""Players, who tell boards what they do; boards are read models that hear a player in order."""

from __future__ import annotations

from dataclasses import dataclass, field

from exactlyonce import Context, Entity, Envelope, message
from exactlyonce.effects.attempt import Strategy
from exactlyonce.values.frozen_json import Json
from tests.samples import SENT


@message("boards.play")
@dataclass
class Play:
    player: str
    boards: list[str]
    value: int


@message("boards.played")
@dataclass
class Played:
    player: str
    board: str
    step: int
    total: int


@message("boards.news")
@dataclass
class News:
    board: str
    heard: int


@dataclass
class Player:
    steps: int = 0
    total: int = 0


@dataclass
class Board:
    """What was heard, in its order: of each player, and of all."""

    told: dict[str, list[list[int]]] = field(default_factory=dict)
    heard: int = 0


def players(name: str, strategy: Strategy) -> Entity[Player]:
    entity = Entity(name, state=Player, container=name, partition_key="/player", strategy=strategy)

    @entity.handles(Play, key=lambda play: play.player)
    def play(state: Player, given: Play, context: Context) -> Player:
        total = (state.total * 3 + given.value) % 1_000_003  # It tells the order, and stays a number that stores keep.
        for board in given.boards:
            context.announce(Played(f"{name}/{given.player}", board, state.steps + 1, total))
        return Player(state.steps + 1, total)

    return entity


def a_play(kind: Entity[Player], number: int, player: str, boards: list[str], value: int) -> Envelope:
    data = {"player": player, "boards": boards, "value": value}
    return Envelope("web", f"{kind.name}-{number}", "boards.play", Json.of(data), SENT)
