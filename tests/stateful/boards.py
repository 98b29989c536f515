"""Players and boards: what a player does is told to boards, which are read models that have to hear it in its order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from exactlyonce import Context, Destination, Entity, Envelope, Outbox, VersionStream, message
from exactlyonce.attempt import Strategy
from exactlyonce.protocols.resequencer.release import Position
from exactlyonce.records.outbox import Output
from exactlyonce.testing.world import World
from exactlyonce.values.envelope import EntityRef
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


boards_queue = Destination(
    "boards", receives=(Played,), to="board", entity_by=lambda played: played.board, ordered=True
)
news_queue = Destination("news", receives=(News,))
requests_queue = Destination("requests")
DESTINATIONS = (boards_queue, news_queue, requests_queue)


def players(name: str, strategy: Strategy) -> Entity[Player]:
    entity = Entity(name, state=Player, container=name, partition_key="/player", strategy=strategy)

    @entity.handles(Play, key=lambda play: play.player)
    def play(state: Player, given: Play, context: Context) -> Player:
        total = (state.total * 3 + given.value) % 1_000_003  # It tells the order, and stays a number that stores keep.
        for board in given.boards:
            context.announce(Played(f"{name}/{given.player}", board, state.steps + 1, total))
        return Player(state.steps + 1, total)

    return entity


def boards(strategy: Strategy, broken: Callable[[Played], bool] = lambda _: False) -> Entity[Board]:
    """Boards whose handler raises for messages that are `broken` when they are handled."""
    entity = Entity("board", state=Board, container="boards", partition_key="/board", strategy=strategy)

    @entity.handles(Played, key=lambda played: played.board)
    def note(state: Board, given: Played, context: Context) -> Board:
        if broken(given):
            raise RuntimeError("not mended yet")
        if given.total % 3 == 0:
            context.announce(News(given.board, state.heard + 1))
        told = {**state.told, given.player: [*state.told.get(given.player, []), [given.step, given.total]]}
        return Board(told, state.heard + 1)

    return entity


OUTBOX = players("walker", Outbox())
STREAM = players("runner", VersionStream(snapshot_every=3))


def a_play(kind: Entity[Player], number: int, player: str, boards: list[str], value: int) -> Envelope:
    data = {"player": player, "boards": boards, "value": value}
    return Envelope("web", f"{kind.name}-{number}", "boards.play", Json.of(data), SENT)


def played(world: World) -> dict[tuple[str, str], dict[Position, Output]]:
    """What was sent: by board and source, each by its position."""
    sent: dict[tuple[str, str], dict[Position, Output]] = {}
    for output in world.transport.queues["boards"]:
        envelope = Envelope.read(output.envelope.text)
        assert output.place is not None
        board = EntityRef.of_source(output.place.receiver).id
        sent.setdefault((board, envelope.source), {})[output.place.channel, output.place.number] = output
    return sent
