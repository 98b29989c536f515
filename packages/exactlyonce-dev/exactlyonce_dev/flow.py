"""A flow: deliveries that followed from what somebody outside did, and what came between them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from exactlyonce.errors import ConfigurationError
from exactlyonce.protocols.outbox.due import RELEASE
from exactlyonce.stores.port import entity_named
from exactlyonce.values.envelope import EntityRef, Origin, derived_id, message_hash, message_key

Row = Mapping[str, Any]
Tries = Mapping[str, Sequence[Mapping[str, Any]]]
"""By the id of a call what came of its tries, in order."""
LATER: Final = "published later"
FAILED: Final = "failed"
_COMES_AGAIN: Final = frozenset({"lost with the process", FAILED, "cancelled", "under way"})
"""Outcomes after which a queue delivers a message again by itself."""
_NOT_DELIVERED: Final = frozenset({"parked", LATER})
_MOST_DERIVED: Final = 64
"""Outputs of a handler that are known by their ids, though nobody has seen them published."""


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


def time_of(row: Row) -> datetime:
    """When a message was handled; when its delivery began, if it was not."""
    return datetime.fromisoformat(row.get("handled") or row["at"])


def entity_of(row: Row) -> EntityRef | None:
    """The entity of a delivery; None for a parked message, which has a place only."""
    return entity_named(row["entity"]["key"]) if "key" in row["entity"] else None


@dataclass(frozen=True, eq=False)
class Flow:
    """Deliveries in the order of time.

    Attributes:
        rows: the deliveries, the first one first.
        tries: the tries of calls.
        own: the messages from outside whose flow it is; the others came between.
        beginning: by entity the body before the flow, None for none; an entity whose past is in the flow has no entry.
        end: by entity the body after the flow, of those that its own messages concern.
    """

    rows: Sequence[Row]
    tries: Tries
    own: frozenset[str] = frozenset()
    beginning: Mapping[EntityRef, Any] = field(default_factory=dict)
    end: Mapping[EntityRef, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Sequence[Row], id: str, tries: Tries, *, whole: bool = False) -> Flow:
        """The flow of a delivery.

        It begins with what somebody outside did that led to the delivery, and has all copies of that, all that followed, and
        all that changed the same entities meanwhile. The entities begin as they were found.

        Args:
            rows: all deliveries, the first one first.
            id: id of the delivery.
            tries: the tries of calls.
            whole: with all that ever touched the same entities, in place of how they were found.

        Raises:
            ConfigurationError: the delivery is not known any more.
        """
        known = cls(rows, tries)
        roots = {row["id"]: known.root(row) for row in rows}
        if id not in roots:
            raise ConfigurationError("This delivery is forgotten: only the latest are kept.")
        wanted, size = {roots[id]}, 0
        while len(wanted) > size:
            size = len(wanted)
            taken = [row for row in rows if roots[row["id"]] in wanted]
            places = set(map(_place, taken))
            began = -math.inf if whole else min(row.get("began", 0) for row in taken)
            ended = math.inf if whole else max(map(_end, taken))
            near = [row for row in rows if row.get("began", 0) <= ended and _end(row) >= began]
            wanted |= {roots[row["id"]] for row in near if _place(row) in places}
        taken = [row for row in rows if roots[row["id"]] in wanted]
        own = [row for row in rows if roots[row["id"]] == roots[id]]
        refs = dict.fromkeys(ref for row in taken if (ref := entity_of(row)) is not None)
        beginning = {} if whole else {ref: body for ref in refs for body in known._before(ref, taken)}
        ends = {
            ref: body
            for ref in dict.fromkeys(map(entity_of, own))
            if ref is not None
            for body in known._after(ref, taken)
        }
        return cls(taken, tries, frozenset({roots[id]}), beginning, ends)

    def without(self, roots: Iterable[str]) -> Flow:
        """The flow without some of the messages from outside, and without what followed from these."""
        gone = frozenset(roots)
        rows = [row for row in self.rows if self.root(row) not in gone]
        touched = {entity_of(row) for row in rows}
        beginning = {ref: body for ref, body in self.beginning.items() if ref in touched}
        return replace(self, rows=rows, beginning=beginning)

    @property
    def others(self) -> tuple[str, ...]:
        """The messages from outside that came between."""
        return tuple(dict.fromkeys(root for root in map(self.root, self.rows) if root not in self.own))

    @cached_property
    def _causes(self) -> Mapping[str, Row]:
        """By the id of an output, which is that of a call, too, the delivery that caused it."""
        # What is published again, by a duplicate or by the sweeper, was caused the first time.
        causes = {
            output["id"]: row for row in reversed(self.rows) for output in row["outputs"] if row["outcome"] != LATER
        }
        sent = {(row.get("envelope") or {}).get("id") for row in self.rows}
        sent |= {output["id"] for row in self.rows for output in row["outputs"]}
        missing = sent - set(causes)
        for row in reversed(self.rows):
            ref = entity_of(row)
            if missing and ref is not None and row["message"]:
                sent_by = map(Origin(ref, row["message"]).output_id, range(_MOST_DERIVED))
                causes |= {id: row for item in sent_by for id in (item, _released(ref, item)) if id in missing}
        return causes

    def cause(self, row: Row) -> Row | None:
        """The delivery that sent a message, or the call that it replies to; None if it came from outside."""
        envelope = row.get("envelope") or {}
        if row["outcome"] == LATER:
            return next((self._causes[item["id"]] for item in row["outputs"] if item["id"] in self._causes), None)
        by_id = self._causes.get(envelope.get("id", ""))
        if by_id is not None and message_key(_source(by_id), envelope["id"]) == row["message"]:
            return by_id
        return self._causes.get(envelope.get("replyto", ""))

    def root(self, row: Row) -> str:
        """The message from outside that a delivery followed from."""
        seen: set[str] = set()
        if not row.get("envelope") and row["outcome"] != LATER:  # Of a parked message, or a large one.
            row = next((item for item in self.rows if item["message"] == row["message"] and item.get("envelope")), row)
        while (cause := self.cause(row)) is not None and cause["message"] not in seen:
            seen.add(cause["message"])
            row = cause
        message: str = row["message"]
        return message

    def _before(self, ref: EntityRef, taken: Sequence[Row]) -> list[Any]:
        """The body of an entity before the first of some deliveries that concern it, as a list; empty if it is not known."""
        first = next(row for row in taken if entity_of(row) == ref)
        earlier = [row for row in self.rows if entity_of(row) == ref and row.get("ended", math.inf) < first["began"]]
        return [first["before"]] if "before" in first else [row["after"] for row in earlier if "after" in row][-1:]

    def _after(self, ref: EntityRef, taken: Sequence[Row]) -> list[Any]:
        """The body of an entity after the last of some deliveries that concern it, as `_before` does."""
        ids = {row["id"] for row in taken}
        last = max(place for place, row in enumerate(self.rows) if row["id"] in ids and entity_of(row) == ref)
        if "after" in self.rows[last]:
            return [self.rows[last]["after"]]
        # Its process was killed. The next delivery found what it had done.
        return [row["before"] for row in self.rows[last + 1 :] if entity_of(row) == ref and "before" in row][:1]

    @property
    def sent(self) -> Mapping[str, list[str]]:
        """By destination the messages that arrived there, in order."""
        sent: dict[str, dict[str, None]] = {}
        for row in self.rows:
            if row.get("destination") and not row.get("asked"):  # A request comes by no queue.
                sent.setdefault(row["destination"], {})[row["message"]] = None
            for output in row["outputs"]:
                sent.setdefault(output["destination"], {})[output["message"]] = None
        return {name: list(messages) for name, messages in sent.items()}

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

    def fails(self, row: Row) -> bool:
        """Whether all deliveries of a message failed."""
        return all(
            item["outcome"] == FAILED
            for item in self.rows
            if item["message"] == row["message"] and item["outcome"] not in _NOT_DELIVERED
        )

    def acts(self) -> list[Act]:
        """What outsiders did, in order, with what followed from each."""
        acts: list[Act] = []
        latest: dict[str, Act] = {}
        before: dict[str, Row] = {}
        for row in self.rows:
            message = row["message"]
            if row["outcome"] in _NOT_DELIVERED:
                if row["outcome"] == LATER:
                    acts.append(Act(row))
                continue
            is_copy = message in before and before[message]["outcome"] not in _COMES_AGAIN
            cause = self.cause(row)
            # A message that failed, and did not later, may have waited for what came between.
            again = message in latest and before[message]["outcome"] == FAILED and row["outcome"] != FAILED
            if again:
                acts.remove(latest[message])
            if is_copy or again or (cause is None and message not in before):
                acts.append(Act(row, None if cause is None else self._position(row)))
                latest[message] = acts[-1]
            before[message] = row
            act = self._act_of(row, latest)
            if act is not None:
                act.rows.append(row)
        return acts

    def _act_of(self, row: Row, latest: Mapping[str, Act]) -> Act | None:
        seen: set[str] = set()
        while row["message"] not in latest:
            cause = self.cause(row)
            if cause is None or row["message"] in seen:
                return None
            seen.add(row["message"])
            row = cause
        return latest[row["message"]]

    def _position(self, row: Row) -> tuple[str, int] | None:
        for name, messages in self.sent.items():
            if row["message"] in messages:
                return name, messages.index(row["message"])
        return None


def _released(ref: EntityRef, kept: str) -> str:
    """The id under which an entity releases a message that it kept."""
    return derived_id(ref, message_hash(message_key(ref.source, f"{RELEASE}{kept}")), 0)


def _source(row: Row) -> str:
    ref = entity_of(row)
    return "" if ref is None else ref.source


def _end(row: Row) -> float:
    """The version of the story at which a delivery ended; at which it began, if it is under way."""
    end: float = row.get("ended", row.get("began", math.inf))
    return end


def _place(row: Row) -> str:
    """The entity that a delivery concerns, as a text."""
    entity = row["entity"]
    with suppress(KeyError):
        return str(entity["key"])
    return str(entity.get("place", entity["name"]))
