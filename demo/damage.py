"""Damage to a copy of a game's database: one kind for each rule of the audit, each to a game of its own.

The documents are raw, as anybody with an editor could spoil them. What an entity has processed lies in marks, in its ledger and
in pages, or in its companions, as its strategy has it; `History` hides where.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final

from exactlyonce.records.ledger import Mark, destination_digit, split, written
from exactlyonce.values.envelope import message_hash

Document = dict[str, Any]
Container = dict[str, Document]
"""Documents by what names them: `name_of`."""

GAMES, BOARDS, LIBRARY = "games", "boards", "exactlyonce"
LONG_AGO: Final = "2026-01-01T00:00:00Z"
NOWHERE: Final = "00000000-0000-0000-0000-000000000000"
FEWEST: Final = 6
"""Commits that a game needs to be damaged: there have to be older and younger ones."""


@dataclass
class Database:
    """The documents of the sample's containers, without what belongs to the service."""

    games: Container = field(default_factory=dict)
    boards: Container = field(default_factory=dict)
    exactlyonce: Container = field(default_factory=dict)

    def put_apart(self, entity: str, **properties: Any) -> None:
        """Write a document of the library."""
        document = {"pk": entity, "entity": entity, "schema": 1, "at": LONG_AGO, **properties}
        self.exactlyonce[name_of(document)] = document

    def containers(self) -> Iterator[tuple[str, Container]]:
        """Names of containers, and what is in them."""
        yield from vars(self).items()


def name_of(document: Document) -> str:
    """What names a document in its container."""
    return json.dumps([document.get("pk", document.get("gameId")), document["id"]])


@dataclass
class History:
    """What is known of one game's commits."""

    database: Database
    game: str

    @property
    def key(self) -> str:
        """Of the entity."""
        return json.dumps(["range", self.game, self.game], separators=(",", ":"))

    @property
    def ledger(self) -> Document:
        """Of the game."""
        ledger: Document = self.database.games[json.dumps([self.game, self.game])]["_ledger"]
        return ledger

    @property
    def marks(self) -> list[str]:
        """Of the game, the oldest first; none if its strategy has records."""
        return [*split(self.ledger.get("marks", ""))]

    def mark(self, *marks: str) -> None:
        """Write other marks, which are as many as the version says."""
        self.ledger["marks"] = written(marks)
        self.ledger["version"] = len(marks) + self.ledger.get("left", 0)

    @property
    def board_key(self) -> str:
        """Of its line on the board."""
        return json.dumps(["board", self.game, self.game], separators=(",", ":"))

    @property
    def reception(self) -> Document:
        """How far the board has received what the game sends."""
        board = self.database.boards[json.dumps([self.game, self.game])]
        reception: Document = board["_ledger"]["receptions"][0]
        return reception

    def pages(self) -> list[Document]:
        """Of the game, the oldest first."""
        found = (
            item for item in self.database.exactlyonce.values() if (item["pk"], item["kind"]) == (self.key, "page")
        )
        return sorted(found, key=lambda item: int(item["version"]))

    def taken(self) -> Document:
        """The document of some number that the board has taken."""
        numbers = (
            board for board in self.database.boards.values() if board["gameId"] == self.game and "_kind" in board
        )
        return next(number for number in numbers if number["message"] is not None and number["held"] is None)

    def hold(self, number: int) -> None:
        """A message of somebody else waits on the board."""
        held = deepcopy(self.taken())
        held |= {"id": f"{held['id']}-{number}", "held": "{}", "message": f"elsewhere/{number}"}
        held["order"]["number"] = number
        self.database.boards[name_of(held)] = held

    def records(self) -> list[Document]:
        """Records or entries of a stream, by version; none if its strategy has marks."""
        companions = (game for game in self.database.games.values() if game["gameId"] == self.game and "_kind" in game)
        return sorted(companions, key=lambda companion: int(companion["version"]))

    def remove(self, record: Document) -> None:
        """Remove a record."""
        del self.database.games[name_of(record)]

    def add(self, like: Document, **changes: Any) -> None:
        """Add a record like another one, with changes."""
        record = {**deepcopy(like), **changes, "id": f"{like['id']}-again"}
        self.database.games[name_of(record)] = record


Damage = Callable[[History], tuple[str, ...]]
"""Damages a game. Returns the rules that have to find it: none if its strategy has nothing to damage so."""


def twice(history: History) -> tuple[str, ...]:
    """A message changes the game again."""
    history.ledger["version"] += 1
    if marks := history.marks:
        again = Mark.read(marks[0])
        history.mark(*marks, again._replace(since=again.since + 1).text)
    else:
        history.add(history.records()[0], tx="again", version=history.ledger["version"])
    return ("at_most_one_state_change",)


def hole(history: History) -> tuple[str, ...]:
    """The record of a commit between others goes. The board knows what it sent, but goes by numbers: no proof of age."""
    if history.marks:
        return ()
    history.remove(history.records()[2])
    return ("ledger_hole",)


def usurped(history: History) -> tuple[str, ...]:
    """Another message claims a version."""
    if history.marks:
        return ()
    history.add(history.records()[1], message="demo/usurper", tx="usurper", outputs=[])
    return ("two_owners",)


def contradicted(history: History) -> tuple[str, ...]:
    """A second record of a commit says otherwise what it sent."""
    if history.marks:
        return ()
    history.add(history.records()[2], digest="another")
    return ("consistent_state_and_output",)


def ghost(history: History) -> tuple[str, ...]:
    """The board has taken a message that the game never sent, in place of one that it did."""
    taken = history.taken()
    taken["message"] = f"{taken['message'].rpartition('/')[0]}/{NOWHERE}"
    return ("output_unknown", "output_lost")


def owed(history: History) -> tuple[str, ...]:
    """The newest commit has not sent what it owes, and nobody proves the contrary."""
    if history.marks:
        mark = Mark.read(history.marks[-1])
        entry = {"cause": mark.hash, "tx": "nobody.0000001", "at": mark.since * 1000, "outputs": [{"envelope": "{}"}]}
        history.ledger["outbox"] = [entry]
        return ("owing_too_long",)
    newest = history.records()[-1]
    if "owed" not in newest:
        return ()
    newest["owed"] = [{**output, "envelope": "{}", "delay": 0.0} for output in newest["outputs"]]
    return ("owing_too_long",)


def lost(history: History) -> tuple[str, ...]:
    """An output was sent and never reached the board."""
    if marks := history.marks:
        place = history.ledger["to"].index("leader-board")
        history.mark(f"{marks[0]}{destination_digit(place)}", *marks[1:])
    else:
        history.records()[3]["outputs"].append({"id": NOWHERE, "destination": "leader-board", "place": None})
    return ("output_lost",)


def unpaged(history: History) -> tuple[str, ...]:
    """The newest page is deleted. A game that has none yet says that it has."""
    if not history.marks:
        return ()
    if pages := history.pages():
        del history.database.exactlyonce[name_of(pages[-1])]
    else:
        history.ledger.update(cut=1, complete=Mark.read(history.marks[0]).since)
    return ("page_missing",)


def put_back(history: History) -> tuple[str, ...]:
    """A page is of a history that the game does not have."""
    if not history.marks:
        return ()
    since, marks, cut = Mark.read(history.marks[0]).since, history.marks[0], history.ledger.get("cut", 0)
    page = {
        "number": cut + 1,
        "version": 1,
        "begin": since,
        "until": since,
        "marks": marks,
        "to": history.ledger["to"],
    }
    history.database.put_apart(history.key, id=f"page:{cut + 1}", kind="page", **page)
    return ("history_taken_back",)


def orphan(history: History) -> tuple[str, ...]:
    """The document of messages that the game does not keep."""
    history.database.put_apart(
        history.key, id=f"staged:{NOWHERE}", kind="staged", message="demo/never", tx=NOWHERE, outputs=[]
    )
    return ("orphan_staged",)


def unstaged(history: History) -> tuple[str, ...]:
    """The game keeps a message, whose document is gone."""
    if not history.marks:
        return ()
    history.ledger["kept"] = [{"id": NOWHERE, "due": "2999-01-01T00:00:00Z", "tx": "gone-kept"}]
    return ("staged_missing",)


def gap(history: History) -> tuple[str, ...]:
    """The board has waited for a number for long."""
    reception = history.reception
    reception.update(gap_since=LONG_AGO, held=[[reception["next"] + 1] * 2])
    history.hold(reception["next"] + 1)
    return ("sequence_gap",)


def stuck(history: History) -> tuple[str, ...]:
    """The board holds the next message and does not handle it."""
    reception = history.reception
    reception.update(failing="RuntimeError", held=[[reception["next"]] * 2])
    history.hold(reception["next"])
    return ("stuck_reader",)


def early(history: History) -> tuple[str, ...]:
    """The record of the oldest commit goes too early."""
    if history.marks:
        return ()
    history.remove(history.records()[0])
    return ("dedup_expired_early",)


def deleted(history: History) -> tuple[str, ...]:
    """Another program deletes the document of the board's line. Its companions stay."""
    del history.database.boards[json.dumps([history.game, history.game])]
    return ("document_lost",)


def unanswered(history: History) -> tuple[str, ...]:
    """The reply to a call has not come."""
    history.ledger.setdefault("calls", []).append(NOWHERE)
    return ("reply_awaited",)


def answered(history: History) -> tuple[str, ...]:
    """A commit has two answers to its request."""
    first = {"status": 201, "headers": [], "body": None, "asked": "sha256:one"}
    answers = [first, {**first, "status": 409}]
    if history.marks:
        cause = message_hash("demo/request")
        history.ledger["answers"] = [{"cause": cause, "answer": answer} for answer in answers]
    else:
        record = history.records()[1]
        record["answer"] = first
        history.add(record, answer=answers[1])
    return ("one_answer",)


def left(history: History) -> tuple[str, ...]:
    """A caller opened a request, and never closed it."""
    history.database.put_apart(
        history.key, id=f"request:{NOWHERE}", kind="request", request=NOWHERE, envelope="{}", answer=None
    )
    return ("request_left",)


def newer(history: History) -> tuple[str, ...]:
    """A later version of the library wrote a document."""
    (history.ledger if history.marks else history.records()[4])["schema"] = 99
    return ("unreadable",)


DAMAGES: Final[tuple[tuple[Damage, ...], ...]] = (
    (owed, deleted, unpaged),
    (newer,),
    (early,),
    (lost, unstaged),
    (ghost, unanswered, answered),
    (usurped, stuck, left, put_back),
    (hole, gap),
    (twice, contradicted, orphan),
)
"""By game: what does not get into each other's way."""

ON_BOARDS: Final = frozenset({"sequence_gap", "stuck_reader", "document_lost"})


def damaged(database: Database) -> set[tuple[str, str]]:
    """Damage a database. Returns what has to be found: rules and keys of entities.

    Raises:
        ValueError: it has too few games with enough commits.
    """
    games = sorted({item["gameId"] for item in database.games.values()})
    fit = [item for item in (History(database, game) for game in games) if item.ledger["version"] >= FEWEST]
    if len(fit) < len(DAMAGES):
        raise ValueError(f"{len(fit)} games have {FEWEST} shots or more; {len(DAMAGES)} are needed: fire more shots.")
    expected = set()
    for history, damages in zip(fit, DAMAGES, strict=False):
        for rule in (rule for damage in damages for rule in damage(history)):
            expected.add((rule, history.board_key if rule in ON_BOARDS else history.key))
    return expected
