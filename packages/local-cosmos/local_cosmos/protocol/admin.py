"""The admin endpoints, under `/_admin/`: JSON both ways, no authorization, only for clients on this machine.

GET    faults                           {"faults": [{"id", "matched", "hit", "rule": {...}}]}
POST   faults      {rule}               {"id"}
DELETE faults, faults/{id}              {}
GET    delayed                          {"waiting"}
POST   delayed     {"database"?, "fault"?}   {"released"}
POST   lag         {"database", "container"?, "writes", "varying", "share", ...}
POST   split       {"database", "container", "range"}   {"ranges": [ids]}
POST   latency     {"milliseconds"}
GET    clock                            {"now"}
POST   clock       {"advance"}          {"now"}
GET    requests    ?after&limit         {"requests": [...], "last"}
GET    totals                           {"totals": [...]}
GET    history     ?database&container&after&limit   {"writes": [...]}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from local_cosmos.semantics.emulator import Emulator
from local_cosmos.semantics.errors import RefusedError
from local_cosmos.semantics.faults import FaultCounters, FaultRule
from local_cosmos.semantics.replicas import Lag
from local_cosmos.storage.keeper import NotKeptError
from local_cosmos.values import JsonObject, MalformedJsonError, parse

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

LARGEST_ANSWER: Final = 10_000
"""Most requests or writes in one answer; ask again with `after`."""


class AdminError(ValueError):
    """The admin request makes no sense; the message says why."""


class AdminEndpoints:
    """Answers admin requests."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator
        self._endpoints: Mapping[tuple[str, str], Callable[[Mapping[str, str], JsonObject], JsonObject]] = {
            ("GET", "faults"): self._list_faults,
            ("POST", "faults"): self._add_fault,
            ("DELETE", "faults"): self._clear_faults,
            ("GET", "delayed"): lambda *_: {"waiting": emulator.delayed()},
            ("POST", "delayed"): self._release_delayed,
            ("POST", "lag"): self._set_lag,
            ("POST", "split"): self._split,
            ("POST", "latency"): self._set_latency,
            ("GET", "clock"): lambda *_: {"now": emulator.clock.now()},
            ("POST", "clock"): lambda _, body: {"now": emulator.clock.advance(float(body["advance"]))},
            ("GET", "requests"): self._requests,
            ("GET", "totals"): lambda *_: {"totals": [as_json(total) for total in emulator.log.totals()]},
            ("GET", "history"): self._history,
        }

    def answer(self, verb: str, path: list[str], query: Mapping[str, str], body: bytes) -> JsonObject:
        """Answer a request.

        Args:
            path: Segments after `_admin`.
            body: JSON, or empty.

        Raises:
            AdminError: No such endpoint, or the body does not fit.
        """
        recorder = self._emulator.recorder
        if recorder is None or verb == "GET":
            return self._answer(verb, path, query, body)
        recorder.begin()
        answer = self._answer(verb, path, query, body)
        recorder.administration(verb, "/".join(path), body)
        return answer

    def _answer(self, verb: str, path: list[str], query: Mapping[str, str], body: bytes) -> JsonObject:
        if verb == "DELETE" and path[:1] == ["faults"] and path[1:]:
            return self._remove_fault(path[1])
        endpoint = self._endpoints.get((verb, "/".join(path)))
        if endpoint is None:
            raise AdminError(f"There is no {verb} /_admin/{'/'.join(path)}.")
        try:
            return endpoint(query, parse(body) if body else {})
        except (MalformedJsonError, RefusedError, NotKeptError, TypeError, ValueError, KeyError) as error:
            raise AdminError(f"{type(error).__name__}: {error}") from error

    def _list_faults(self, *_: object) -> JsonObject:
        return {"faults": [_counters(counters) for counters in self._emulator.faults.counters()]}

    def _add_fault(self, _: object, body: JsonObject) -> JsonObject:
        rule = FaultRule(**body | {"operations": tuple(body.get("operations", ()))})
        return {"id": self._emulator.faults.add(rule)}

    def _clear_faults(self, *_: object) -> JsonObject:
        self._emulator.faults.clear()
        return {}

    def _remove_fault(self, rule_id: str) -> JsonObject:
        if not rule_id.isdecimal():
            raise AdminError(f"{rule_id!r} is not the id of a fault.")
        self._emulator.faults.remove(int(rule_id))
        return {}

    def _release_delayed(self, _: object, body: JsonObject) -> JsonObject:
        return {"released": self._emulator.release_delayed(body.get("database"), body.get("fault"))}

    def _set_lag(self, _: object, body: JsonObject) -> JsonObject:
        settings = dict(body)
        database, container = settings.pop("database"), settings.pop("container", None)
        self._emulator.account.set_lag(database, container, Lag(**settings))
        return {}

    def _split(self, _: object, body: JsonObject) -> JsonObject:
        ranges = self._emulator.account.split(body["database"], body["container"], str(body["range"]))
        return {"ranges": ranges}

    def _set_latency(self, _: object, body: JsonObject) -> JsonObject:
        self._emulator.latency = float(body["milliseconds"]) / 1000
        return {}

    def _requests(self, query: Mapping[str, str], _: object) -> JsonObject:
        log = self._emulator.log
        entries = log.read(int(query.get("after", 0)), _limit(query))
        return {"requests": [as_json(entry) for entry in entries], "last": log.last_number}

    def _history(self, query: Mapping[str, str], _: object) -> JsonObject:
        after = int(query.get("after", 0))
        writes = self._emulator.history.read(query.get("database"), query.get("container"), after, _limit(query))
        return {"writes": [as_json(write) for write in writes]}


def as_json(value: DataclassInstance) -> JsonObject:
    """The fields of a dataclass, one level deep."""
    return {item.name: getattr(value, item.name) for item in fields(value)}


def _counters(counters: FaultCounters) -> dict[str, Any]:
    return {
        "id": counters.rule_id,
        "matched": counters.matched,
        "hit": counters.hit,
        "rule": as_json(counters.rule),
    }


def _limit(query: Mapping[str, str]) -> int:
    return min(int(query.get("limit", LARGEST_ANSWER)), LARGEST_ANSWER)
