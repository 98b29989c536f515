"""A story: what an emulator was asked, step by step, in a file. Played again (`local_cosmos.replaying`), it ends the same way.

One JSON object a line. The first has the settings of the account, each other one a step, and its time by the clock
without the clock's moves:

{"story": 1, "settings": {...}}
{"at": 1800000000.0, "request": {...}, "reply": {"status": 412, "substatus": 0, "etag": null, "manner": "answer"}}
{"at": 1800000000.5, "admin": "POST faults", "body": "{...}"}
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import MISSING, asdict, fields
from typing import IO, TYPE_CHECKING, Any, Final

from local_cosmos.semantics.requests import Reply, Request
from local_cosmos.values import JsonObject

if TYPE_CHECKING:
    from local_cosmos.semantics.account import AccountSettings

VERSION: Final = 1
"""Of the file."""

_DEFAULTS: Final = {item.name: item.default for item in fields(Request) if item.default is not MISSING}


class Recorder:
    """Writes a story.

    Args:
        settings: Of the account, which is empty.
        source: Seconds since 1970.
    """

    def __init__(self, file: IO[str], settings: AccountSettings, source: Callable[[], float] = time.time) -> None:
        self._file = file
        self._source = source
        self._now = source()
        self._write({"story": VERSION, "settings": asdict(settings)})

    def time(self) -> float:
        """The time of the step, for the account's clock: it stands still within a step, as when it is played again."""
        return self._now

    def begin(self) -> None:
        """A step begins."""
        self._now = self._source()

    def request(self, request: Request, reply: Reply, manner: str) -> None:
        """A request was answered, in a manner of the emulator's (see `Outcome`)."""
        self._write({"at": self._now, "request": as_json(request), "reply": outcome_of(reply, manner)})

    def administration(self, verb: str, path: str, body: bytes) -> None:
        """An administrative step was taken."""
        self._write({"at": self._now, "admin": f"{verb} {path}", "body": body.decode()})

    def _write(self, line: JsonObject) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()  # The process may be killed, and the story matters most then.


def outcome_of(reply: Reply, manner: str) -> JsonObject:
    """The parts of a reply that have to be the same in a replay."""
    return {"status": reply.status, "substatus": reply.substatus, "etag": reply.etag, "manner": manner}


def as_json(request: Request) -> JsonObject:
    """What of a request is not as by default."""
    names = (item.name for item in fields(request))
    said = {name: value for name in names if (value := getattr(request, name)) != _DEFAULTS.get(name)}
    if "body" in said:
        said["body"] = request.body.decode("utf-8", "surrogateescape")
    return said


def request_of(said: dict[str, Any]) -> Request:
    """The request that `as_json` wrote."""
    body = said.pop("body", "").encode("utf-8", "surrogateescape")
    return Request(**said | {"body": body, "query_features": tuple(said.get("query_features", ()))})
