"""A small read model for tests: a board that keeps what it was shown, in the order in which it was shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from exactlyonce import Context, Destination, Entity, Envelope, message
from exactlyonce.effects.attempt import Again, Before, Finished, Handle, Handled, Memory, Work
from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.effect import Effect
from exactlyonce.errors import HandlerFailed
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.protocols.resequencer.protocol import Resequencer
from exactlyonce.protocols.resequencer.release import BATCH_DOCUMENTS
from exactlyonce.protocols.steps.batch import BATCH_BYTES
from exactlyonce.records.companions import NumberedMessage, companion_document
from exactlyonce.records.ledger import MAX_DOCUMENT_BYTES
from exactlyonce.records.outbox import NUMBER, Place, Ranges, Reception
from exactlyonce.values.frozen_json import Json
from tests.unit.script import Played, Replies, Script


@message("board.scored")
@dataclass
class Scored:
    board: str
    number: int
    answers: int = 0
    padding: str = ""
    repeat: int = 1
    keep: int = 0
    ends: bool = False


@message("board.shown")
@dataclass
class Shown:
    number: int
    padding: str = ""


@dataclass
class Board:
    seen: list[str] = field(default_factory=list)
    kept: str = ""


BOARDS: Entity[Board] = Entity("board", state=Board, container="boards", strategy=Resequencer(), adopts=True)
BOARD = BOARDS.ref("b")
SCREENS = Routes.to((Destination("screens"),), {"screens": 1024 * 1024})
RESEQUENCER = Resequencer()
SLACK = 2_000
"""What is reckoned of a document before it is written may be wrong by this: references of outputs are not counted."""


@BOARDS.handles(Scored, key=lambda scored: scored.board)
def scored_(state: Board, given: Scored, context: Context) -> Board:
    for _ in range(given.answers):
        context.send("screens", Shown(given.number, given.padding * given.repeat))
    if given.ends:
        context.delete()
    return Board([*state.seen, str(given.number)], given.padding[:1] * given.keep or state.kept)


def scored(number: int, source: str = "s", *, id: str | None = None, key: str = "b", **data: Any) -> Envelope:
    """The message that has a number in the channel of a source to a board."""
    content = Json.of({"board": "b", "number": number, **data})
    place = Place(channel_of(source), BOARDS.ref(key).source, number)
    return Envelope(source, id or f"m-{number}", "board.scored", content, extensions=place.extensions)


def channel_of(source: str) -> str:
    """The channel in which a source sends."""
    return f"from{source}"


def received(source: str, next: int = 1, held: Ranges = (), **more: Any) -> Reception:
    """How far the channel of a source is received."""
    return Reception(channel_of(source), source, next, held, **more)


def document_of(number: int, message: str | None, at: datetime, held: Json | None = None) -> NumberedMessage:
    """The document of a number of the source `s`."""
    return NumberedMessage(BOARD.key, Place(channel_of("s"), BOARD.source, number), "s", message, at, held)


def size_of(commit: SaveBatch) -> int:
    """Bytes that a batch has."""
    written = [*commit.create, *(item for item, _ in commit.replace)]
    return commit.document.size + sum(Json.of(companion_document(BOARD, item)).size for item in written)


class Readers(Script):
    """A read model, and what is delivered to it. The handler raises for numbers that are `broken`.

    It takes no batch that the service would not take.
    """

    def __init__(
        self, document: Json | None = None, strategy: Resequencer = RESEQUENCER, routes: Routes = SCREENS
    ) -> None:
        super().__init__(document, BOARD)
        self.strategy = strategy
        self.broken: set[tuple[str, int]] = set()
        self.handled: list[str] = []
        self._runner = Runner(BOARDS, BOARD, routes)

    def usual(self, effect: Effect[Any]) -> Any:
        if isinstance(effect, SaveBatch):
            assert effect.document.size <= MAX_DOCUMENT_BYTES + SLACK
            assert size_of(effect) <= BATCH_BYTES
            assert len(effect.create) + len(effect.replace) <= BATCH_DOCUMENTS
        return super().usual(effect)

    def handle(self, before: Before, envelope: Envelope) -> Handled:
        number = int(dict(envelope.extensions)[NUMBER])
        self.handled.append(f"{envelope.source}{number}")
        if (envelope.source, number) in self.broken:
            raise HandlerFailed(f"Message {envelope.id}: the handler raised.")
        return self._runner(before, envelope)

    def attempted(self, *messages: Envelope, memory: Memory | None = None, replies: Replies | None = None) -> Played:
        """Make one attempt."""
        return self.play(self.strategy.attempt(self.work(*messages), memory or Memory()), replies)

    def work(self, *messages: Envelope, handle: Handle | None = None) -> Work:
        """Messages for the read model."""
        return Work(BOARD, messages, handle or self.handle, self._runner.absent)

    def delivered(self, *messages: Envelope) -> Finished:
        """Make attempts until one finishes; each of the others got something done."""
        played = self.attempted(*messages)
        while isinstance(played.result, Again):
            assert played.again.progressed, played.again.reason
            played = self.attempted(*messages, memory=played.again.memory)
        return played.finished

    @property
    def seen(self) -> list[str] | None:
        """What the read model was shown; None if it is absent."""
        body = self.body
        return None if body is None else body["seen"]

    def reception(self, source: str = "s") -> Reception:
        """How far it has received the channel of a source."""
        return next((item for item in self.ledger.receptions if item.source == source), received(source))

    @property
    def held(self) -> dict[str, Ranges]:
        """What it holds, by source."""
        return {reception.source: reception.held for reception in self.ledger.receptions if reception.held}

    @property
    def waiting(self) -> list[str]:
        """The documents that hold a message."""
        numbered = (companion for companion in self.companions if isinstance(companion, NumberedMessage))
        return sorted(f"{item.source}{item.number}" for item in numbered if item.held is not None)
