"""A flow: deliveries that are connected by entities, or by what caused what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from exactlyonce.errors import ConfigurationError
from exactlyonce.stores.listing import entity_named
from exactlyonce.values.identity import EntityRef

Row = Mapping[str, Any]
LATER: Final = "published later"
_COMES_AGAIN: Final = frozenset({"lost with the process", "failed", "cancelled", "under way"})
"""Outcomes after which a queue delivers a message again by itself."""
_NOT_DELIVERED: Final = frozenset({"parked", LATER})


@dataclass
class Act:
    """Something that somebody outside did, and what went wrong in what followed.

    Attributes:
        row: the delivery that it began.
        of_output: its destination and position there, if it is a copy of an output.
        rows: all deliveries that followed from it.
    """

    row: Row
    of_output: tuple[str, int] | None = None
    rows: list[Row] = field(default_factory=list)


class Flow:
    """Deliveries that are connected, in the order of time.

    Args:
        rows: the first one first.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        # What is published again, by a duplicate or by the sweeper, was caused the first time.
        self._causes = {output["message"]: row for row in reversed(rows) for output in row["outputs"]}
        self._calls = {output["id"]: row for row in reversed(rows) for output in row["outputs"]}

    @classmethod
    def around(cls, rows: Sequence[Row], id: str) -> Flow:
        """The flow that a delivery is part of.

        Args:
            rows: all that are known, the latest first.
            id: of the delivery.

        Raises:
            ConfigurationError: the delivery is not known any more.
        """
        known: set[str] = {mark for row in rows if row["id"] == id for mark in _marks(row)}
        if not known:
            raise ConfigurationError("This delivery is forgotten: only the latest are kept.")
        size = 0
        while len(known) > size:
            size = len(known)
            known |= {mark for row in rows if known & _marks(row) for mark in _marks(row)}
        return cls([row for row in reversed(rows) if known & _marks(row)])

    @property
    def entities(self) -> tuple[EntityRef, ...]:
        """The entities in the flow, in the order in which they got messages."""
        keys = dict.fromkeys(row["entity"]["key"] for row in self.rows if "key" in row["entity"])
        return tuple(map(entity_named, keys))

    @property
    def sent(self) -> Mapping[str, list[str]]:
        """By destination the messages that arrived there, in order."""
        found: dict[str, dict[str, None]] = {}
        for row in self.rows:
            if row.get("destination"):
                found.setdefault(row["destination"], {})[row["message"]] = None
            for output in row["outputs"]:
                found.setdefault(output["destination"], {})[output["message"]] = None
        return {name: list(messages) for name, messages in found.items()}

    @property
    def takers(self) -> Mapping[str, str]:
        """By destination the entity type to which its messages came."""
        types = {row["message"]: row["entity"]["type"] for row in self.rows if "type" in row["entity"]}
        return {
            output["destination"]: types[output["message"]]
            for row in self.rows
            for output in row["outputs"]
            if output["message"] in types
        }

    def acts(self) -> list[Act]:
        """What outsiders did, in order, with what followed from each."""
        found: list[Act] = []
        latest: dict[str, Act] = {}
        before: dict[str, Row] = {}
        for row in self.rows:
            message = row["message"]
            if row["outcome"] in _NOT_DELIVERED:
                if row["outcome"] == LATER:
                    found.append(Act(row))
                continue
            is_copy = message in before and before[message]["outcome"] not in _COMES_AGAIN
            cause = self._cause(row)
            if is_copy or (cause is None and message not in before):
                found.append(Act(row, None if cause is None else self._place(row)))
                latest[message] = found[-1]
            before[message] = row
            act = self._act_of(row, latest)
            if act is not None:
                act.rows.append(row)
        return found

    def _cause(self, row: Row) -> Row | None:
        """The delivery that sent a message, or the call that it replies to; None if it came from outside."""
        replies_to = (row.get("envelope") or {}).get("replyto", "")
        return self._causes.get(row["message"]) or self._calls.get(replies_to)

    def _act_of(self, row: Row, latest: Mapping[str, Act]) -> Act | None:
        seen: set[str] = set()
        while row["message"] not in latest:
            cause = self._cause(row)
            if cause is None or row["message"] in seen:
                return None
            seen.add(row["message"])
            row = cause
        return latest[row["message"]]

    def _place(self, row: Row) -> tuple[str, int] | None:
        for name, messages in self.sent.items():
            if row["message"] in messages:
                return name, messages.index(row["message"])
        return None


def _marks(row: Row) -> set[str]:
    """What connects a delivery with others: its entity, its message, and what it sent."""
    entity = row["entity"].get("key") or row["entity"].get("place") or row["entity"]["name"]
    replies_to = (row.get("envelope") or {}).get("replyto")
    return {
        f"entity {entity}",
        *([f"message {row['message']}"] if row["message"] else []),
        *(f"message {one['message']}" for one in row["outputs"]),
        *(f"call {one['id']}" for one in row["outputs"]),
        *([f"call {replies_to}"] if replies_to else []),
    }
