"""What a client can ask of an entity by requests, operation by operation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from uuid import UUID

from proton import Data, Described, ulong

from local_service_bus.amqp.consumer import lose_lock, settle
from local_service_bus.amqp.sections import milliseconds, read, write
from local_service_bus.amqp.wire import array
from local_service_bus.broker.broker import Broker
from local_service_bus.broker.messages import SessionLock, Stored
from local_service_bus.broker.queue import MessageQueue
from local_service_bus.broker.refusals import NOT_IMPLEMENTED, RefusedError, lock_lost
from local_service_bus.broker.rules import Filter
from local_service_bus.topology import CorrelationFilter

_RULE: Final = 0x13700000004
_NO_ACTION: Final = 0x13700000005
_FILTERS: Final = {True: 0x1370000007, False: 0x1370000008}
_CORRELATION: Final = 0x1370000009

_FIELDS: Final = {
    "correlation-id": "correlation_id",
    "message-id": "message_id",
    "to": "to",
    "reply-to": "reply_to",
    "label": "subject",
    "session-id": "session_id",
    "reply-to-session-id": "reply_to_session_id",
    "content-type": "content_type",
}
"""Of a correlation filter: as clients name them, in the order in which they are told, and as the topology does."""

_CONSTANTS: Final = {"1=1": True, "1=0": False}
"""The expressions of SQL by which clients ask for everything and nothing."""


def read_filter(description: Mapping[Any, Any]) -> Filter:
    """The filter of a rule that a client adds.

    Raises:
        RefusedError: it has an action, or is an expression of SQL.
    """
    said = {str(name): value for name, value in description.items() if value is not None}
    if "sql-rule-action" in said:
        raise RefusedError(NOT_IMPLEMENTED, "The local endpoint has no actions of rules.")
    if "sql-filter" in said:
        expression = str(said["sql-filter"]["expression"])
        if expression.replace(" ", "") not in _CONSTANTS:
            told = f"The local endpoint has no SQL filters such as {expression!r}, but for 1=1 and 1=0."
            raise RefusedError(NOT_IMPLEMENTED, f"{told} Use a correlation filter.")
        return _CONSTANTS[expression.replace(" ", "")]
    wanted = {str(name): value for name, value in said["correlation-filter"].items()}
    properties = {str(name): value for name, value in (wanted.get("properties") or {}).items()}
    return CorrelationFilter(**{ours: wanted.get(name) for name, ours in _FIELDS.items()}, properties=properties)


def write_rule(name: str, item: Filter) -> Described:
    """A rule as a client reads it: filter, action, name."""
    if isinstance(item, bool):
        told = Described(ulong(_FILTERS[item]), [])
    else:
        properties: dict[Any, Any] = dict(item.properties)
        fields: list[Any] = [getattr(item, ours) for ours in _FIELDS.values()]
        told = Described(ulong(_CORRELATION), [*fields, properties])
    return Described(ulong(_RULE), [told, Described(ulong(_NO_ACTION), []), name])


DELETES: Final = 0
"""The settle mode of a receiver that receives and deletes."""

_SETTLEMENTS: Final = {
    "completed": "complete",
    "abandoned": "abandon",
    "defered": "defer",
    "suspended": "dead_letter",
}


class EntityRequest:
    """One request about one entity.

    Args:
        name: The operation, as the client writes it.
        holding: Finds the session that the client holds here, by its id.
    """

    def __init__(
        self,
        broker: Broker,
        address: str,
        name: str,
        *,
        body: Mapping[str, Any],
        holding: Callable[[str], SessionLock | None],
    ) -> None:
        self._broker = broker
        self._address = address
        self._body = body
        self._holding = holding
        self.operation, self.perform = self._find(name)

    def message_ids(self) -> tuple[str | None, ...]:
        """Of the messages it is about, as far as it says so."""
        if self.operation == "schedule":
            return tuple(item["message-id"] for item in self._body["messages"])
        return tuple(stored.content.message_id for stored in self.held())

    def lose_locks(self) -> None:
        """End the locks that it stands on."""
        session_id = self._body.get("session-id")
        if session_id is not None and (session := self._holding(session_id)) is not None:
            self._queue().sessions.lose(session)
        for token in self._tokens():
            lose_lock(self._queue(), token)

    def repeat(self, seen: Iterable[Stored]) -> None:
        """Deliver messages once more."""
        for stored in seen:
            self._queue().repeat(stored)

    def held(self) -> list[Stored]:
        """The messages whose locks it names."""
        return [stored for token in self._tokens() if (stored := self._queue().find(token)) is not None]

    def _find(self, name: str) -> tuple[str, Callable[[], Mapping[str, Any] | None]]:
        known: dict[str, tuple[str, Callable[[], Mapping[str, Any] | None]]] = {
            "renew-lock": ("renew_lock", self._renew),
            "update-disposition": (_SETTLEMENTS.get(self._body.get("disposition-status", ""), ""), self._settle),
            "schedule-message": ("schedule", self._schedule),
            "cancel-scheduled-message": ("cancel", self._cancel),
            "peek-message": ("peek", self._peek),
            "receive-by-sequence-number": ("receive_deferred", self._receive_deferred),
            "renew-session-lock": ("renew_session_lock", self._renew_session),
            "get-session-state": ("get_session_state", self._get_state),
            "set-session-state": ("set_session_state", self._set_state),
            "get-message-sessions": ("list_sessions", self._list_sessions),
            "enumerate-rules": ("list_rules", self._list_rules),
            "add-rule": ("add_rule", self._add_rule),
            "remove-rule": ("remove_rule", self._remove_rule),
        }
        try:
            return known[name.removeprefix("com.microsoft:")]
        except KeyError:
            raise RefusedError(
                NOT_IMPLEMENTED, f"The local endpoint does not know {name!r}; it knows {', '.join(known)}."
            ) from None

    def _queue(self) -> MessageQueue:
        return self._broker.queue(self._address)

    def _tokens(self) -> list[UUID]:
        return list(self._body.get("lock-tokens", ()))

    def _session(self) -> SessionLock:
        session = self._holding(self._body["session-id"])
        if session is None:
            raise lock_lost(self._address, of_session=True)
        return session

    def _renew(self) -> Mapping[str, Any]:
        ends = [milliseconds(self._queue().renew(token)) for token in self._tokens()]
        return {"expirations": array(Data.TIMESTAMP, ends)}

    def _settle(self) -> None:
        reason, description = self._body.get("deadletter-reason"), self._body.get("deadletter-description")
        changed = self._body.get("properties-to-modify") or {}
        for token in self._tokens():
            if self.operation == "dead_letter":
                self._queue().dead_letter(token, reason, description, changed)
            else:
                settle(self._queue(), self.operation, token, changed)

    def _schedule(self) -> Mapping[str, Any]:
        contents = [read(bytes(item["message"])) for item in self._body["messages"]]
        numbers = self._broker.entrance(self._address).schedule(contents)
        return {"sequence-numbers": array(Data.LONG, numbers)}

    def _cancel(self) -> None:
        self._broker.entrance(self._address).cancel(list(self._body["sequence-numbers"]))

    def _peek(self) -> Mapping[str, Any] | None:
        first, most = int(self._body["from-sequence-number"]), int(self._body["message-count"])
        session_id = self._body.get("session-id")
        waiting = [
            item
            for item in self._broker.scheduled(self._address)
            if item.sequence_number >= first and session_id in (None, item.content.session_id)
        ]
        seen = sorted([*self._queue().peek(first, most, session_id), *waiting], key=lambda item: item.sequence_number)
        return {"messages": [{"message": write(item)} for item in seen[:most]]} if seen else None

    def _receive_deferred(self) -> Mapping[str, Any]:
        session_id = self._body.get("session-id")
        session = None if session_id is None else self._session()
        found = self._queue().find_deferred(list(self._body["sequence-numbers"]), session)
        messages = [{"message": write(item, by_request=True), "lock-token": item.token} for item in found]
        if self._body.get("receiver-settle-mode") == DELETES:
            for token in [item.token for item in found if item.token is not None]:
                self._queue().complete(token)
        return {"messages": messages}

    def _renew_session(self) -> Mapping[str, Any]:
        session = self._session()
        self._queue().sessions.renew(session)
        return {"expiration": milliseconds(session.until)}

    def _get_state(self) -> Mapping[str, Any]:
        return {"session-state": self._queue().sessions.state(self._session().session_id)}

    def _set_state(self) -> None:
        state = self._body.get("session-state")
        self._queue().sessions.keep(self._session().session_id, None if state is None else bytes(state))

    def _list_rules(self) -> Mapping[str, Any] | None:
        skip, top = self._body.get("skip", 0), self._body.get("top", 100)
        page = self._broker.rules(self._address).all()[skip : skip + top]
        return {"rules": [{"rule-description": write_rule(name, item)} for name, item in page]} if page else None

    def _add_rule(self) -> None:
        wanted = read_filter(self._body["rule-description"])
        self._broker.rules(self._address).add(str(self._body["rule-name"]), wanted)

    def _remove_rule(self) -> None:
        self._broker.rules(self._address).remove(str(self._body["rule-name"]))

    def _list_sessions(self) -> Mapping[str, Any] | None:
        skip, top = self._body.get("skip", 0), self._body.get("top", 100)
        page = self._queue().session_ids()[skip : skip + top]
        return {"skip": skip + len(page), "sessions-ids": page} if page else None
