"""Damage to a copy of a game's database: one kind for each rule of the audit, each to a game of its own.

The documents are raw, as anybody with an editor could spoil them. Records of an entity's commits lie in its ledger,
among its companions or in the library's container, as its strategy has it; `History` hides where.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final

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
    """The records of one game's commits, oldest first."""

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
    def board_key(self) -> str:
        """Of its line on the board."""
        return json.dumps(["board", self.game, self.game], separators=(",", ":"))

    @property
    def reception(self) -> Document:
        """How far the board has received what the game sends."""
        board = self.database.boards[json.dumps([self.game, self.game])]
        reception: Document = board["_ledger"]["receptions"][0]
        return reception

    def receive(self, channel: str, source: str, first: int, last: int) -> bool:
        """Put numbers in the game's ledger, whose version stays. Returns whether it is a ledger that has such."""
        if self.ledger["protocol"] != "outbox":
            return False
        received = {"id": channel, "source": source, "received": [[first, last]], "marks": ""}
        self.ledger["channels"].append(received)
        return True

    def taken(self) -> Document:
        """The document of some number that the board has taken."""
        numbers = (one for one in self.database.boards.values() if one["gameId"] == self.game and "_kind" in one)
        return next(one for one in numbers if one["message"] is not None and one["held"] is None)

    def hold(self, number: int) -> None:
        """A message of somebody else waits on the board."""
        held = deepcopy(self.taken())
        held |= {"id": f"{held['id']}-{number}", "held": "{}", "message": f"elsewhere/{number}"}
        held["order"]["number"] = number
        self.database.boards[name_of(held)] = held

    def commits(self) -> list[Document]:
        """Entries, records and companions, by version."""
        companions = (one for one in self.database.games.values() if one["gameId"] == self.game and "_kind" in one)
        apart = (
            one for one in self.database.exactlyonce.values() if one["pk"] == self.key and one["kind"] == "processed"
        )
        return sorted([*self.ledger["entries"], *companions, *apart], key=lambda one: int(one["version"]))

    def remove(self, commit: Document) -> None:
        """Remove every record of a commit."""
        if commit in self.ledger["entries"]:
            self.ledger["entries"].remove(commit)
        for _, container in self.database.containers():
            container.pop(name_of(commit) if "id" in commit else "", None)

    def add(self, like: Document, **changes: Any) -> None:
        """Add a record like another one, with changes."""
        record = {**deepcopy(like), **changes}
        if "id" not in like:
            self.ledger["entries"].append(record)
            return
        record["id"] = f"{like['id']}-again"
        container = self.database.exactlyonce if "pk" in like else self.database.games
        container[name_of(record)] = record


Damage = Callable[[History], tuple[str, ...]]
"""Damages a game. Returns the rules that have to find it: none if its strategy has nothing to damage so."""


def twice(history: History) -> tuple[str, ...]:
    """A message changes the game again."""
    history.ledger["version"] += 1
    history.add(history.commits()[0], tx="again", version=history.ledger["version"])
    return ("at_most_one_state_change",)


def hole(history: History) -> tuple[str, ...]:
    """The record of a commit between others goes. The board knows what it sent, but goes by numbers: no proof of age."""
    history.remove(history.commits()[2])
    return ("ledger_hole",)


def usurped(history: History) -> tuple[str, ...]:
    """Another message claims a version."""
    history.add(history.commits()[1], message="demo/usurper", tx="usurper", outputs=[])
    return ("two_owners",)


def ghost(history: History) -> tuple[str, ...]:
    """The board has taken a message that the game never sent, in place of one that it did."""
    taken = history.taken()
    taken["message"] = f"{taken['message'].rpartition('/')[0]}/{NOWHERE}"
    return ("consistent_state_and_output",)


def owed(history: History) -> tuple[str, ...]:
    """The newest commit has not published what it owes."""
    newest = history.commits()[-1]
    if "owed" not in newest:
        return ()
    newest["owed"] = [{**output, "envelope": "{}", "delay": 0.0} for output in newest["outputs"]]
    return ("output_owed",)


def lost(history: History) -> tuple[str, ...]:
    """An output was sent and never reached the board."""
    history.commits()[3]["outputs"].append({"id": NOWHERE, "destination": "leader-board", "place": None})
    return ("output_lost",)


def miscounted(history: History) -> tuple[str, ...]:
    """The game knows a numbered message that its version does not count."""
    return ("count_mismatch",) if history.receive("uncounted", "elsewhere", 1, 1) else ()


def missed(history: History) -> tuple[str, ...]:
    """The second message of somebody else has come, and the first one has not."""
    if not history.receive("missed", "elsewhere", 2, 2):
        return ()
    history.ledger["version"] += 1
    return ("number_missing",)


def ahead(history: History) -> tuple[str, ...]:
    """The game has received two messages of its own, and gave out one number."""
    source = history.reception["source"]
    if not history.receive("ahead", source, 1, 2):
        return ()
    history.ledger["version"] += 2
    sequence = {"destination": "itself", "receiver": source, "channel": "ahead", "last": 1, "ordered": False}
    history.ledger["sequences"].append(sequence)
    return ("channel_ahead",)


def orphan(history: History) -> tuple[str, ...]:
    """A staged document of an attempt that never committed."""
    history.database.put_apart(
        history.key, id=f"staged:{NOWHERE}", kind="staged", message="demo/never", tx=NOWHERE, outputs=[]
    )
    return ("orphan_staged",)


def unstaged(history: History) -> tuple[str, ...]:
    """The newest commit owes outputs that were staged, and they are gone."""
    newest = history.commits()[-1]
    if newest not in history.ledger["entries"]:
        return ()
    newest.update(staged=True, owed="staged")
    history.database.exactlyonce.pop(name_of({"pk": history.key, "id": f"staged:{newest['tx']}"}), None)
    return ("staged_missing", "output_owed")


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
    history.remove(history.commits()[0])
    return ("dedup_expired_early",)


def deleted(history: History) -> tuple[str, ...]:
    """Another program deletes the document of the board's line. Its companions stay."""
    del history.database.boards[json.dumps([history.game, history.game])]
    return ("document_lost",)


def unanswered(history: History) -> tuple[str, ...]:
    """The reply to a call has not come."""
    history.ledger["calls"].append(NOWHERE)
    return ("reply_awaited",)


def answered(history: History) -> tuple[str, ...]:
    """A commit has two records, with different answers to its request."""
    first = {"status": 201, "headers": [], "body": None, "asked": "sha256:one"}
    commit = history.commits()[1]
    commit["answer"] = first
    history.add(commit, answer={**first, "status": 409})
    return ("one_answer",)


def left(history: History) -> tuple[str, ...]:
    """A caller opened a request, and never closed it."""
    history.database.put_apart(
        history.key, id=f"request:{NOWHERE}", kind="request", request=NOWHERE, envelope="{}", answer=None
    )
    return ("request_left",)


def newer(history: History) -> tuple[str, ...]:
    """A later version of the library wrote a document."""
    commit = history.commits()[4]
    (commit if "id" in commit else history.ledger)["schema"] = 99
    return ("unreadable",)


DAMAGES: Final[tuple[tuple[Damage, ...], ...]] = (
    (newer,),
    (early,),
    (lost, unstaged),
    (owed, miscounted, missed, ahead, deleted),
    (ghost, unanswered, answered),
    (usurped, stuck, left),
    (hole, gap),
    (twice, orphan),
)
"""By game: what does not get into each other's way."""

ON_BOARDS: Final = frozenset({"sequence_gap", "stuck_reader", "document_lost"})


def damaged(database: Database) -> set[tuple[str, str]]:
    """Damage a database. Returns what has to be found: rules and keys of entities.

    Raises:
        ValueError: it has too few games with enough commits.
    """
    games = sorted({one["gameId"] for one in database.games.values()})
    fit = [one for one in (History(database, game) for game in games) if len(one.commits()) >= FEWEST]
    if len(fit) < len(DAMAGES):
        raise ValueError(f"{len(fit)} games have {FEWEST} shots or more; {len(DAMAGES)} are needed: fire more shots.")
    expected = set()
    for history, damages in zip(fit, DAMAGES, strict=False):
        for rule in (rule for damage in damages for rule in damage(history)):
            expected.add((rule, history.board_key if rule in ON_BOARDS else history.key))
    return expected
