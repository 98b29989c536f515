"""Microsoft's engine, in a process of its own: it needs Python 3.13, and packages that this one may not have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from function_host_tests.contract.port import MESSAGE, Outcome

VARIABLE = "FUNCTION_HOST_ENGINE"
"""Names a Python that has `azure-functions-runtime`."""
_FOLDER = Path(__file__).parent
_ARGUMENTS = {"timer": "timer", "batch": "messages"}
_ADDRESS = "http://127.0.0.1/api/"


def engine_python() -> str | None:
    """A Python with Microsoft's engine; None if there is none."""
    return os.environ.get(VARIABLE) or (sys.executable if find_spec("azure_functions_runtime") else None)


class MicrosoftEngine:
    """The program `engine_program.py`, and what the real host would send it.

    Args:
        python: that has the engine.
    """

    def __init__(self, python: str) -> None:
        self._python = python

    def __enter__(self) -> MicrosoftEngine:
        # What the engine logs goes to the test's own stderr.
        command = [self._python, "-I", str(_FOLDER / "engine_program.py")]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, cwd=_FOLDER, stdin=pipe, stdout=pipe, text=True)
        self._read()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    async def queue(self, function: str, text: str) -> Outcome:
        metadata = {name: ["json" if name == "DequeueCount" else "string", str(item)] for name, item in MESSAGE.items()}
        return await self._call(function, "message", ["string", text], metadata)

    async def bus(self, function: str, *messages: dict[str, Any]) -> Outcome:
        if _ARGUMENTS.get(function) == "messages":
            columns = {
                "MessageIdArray": ["collection_string", [item["MessageId"] for item in messages]],
                "UserPropertiesArray": ["json", json.dumps([{} for _ in messages])],
                "SequenceNumberArray": ["collection_sint64", [item["SequenceNumber"] for item in messages]],
            }
            value = ["collection_string", [item["body"] for item in messages]]
            return await self._call(function, "messages", value, columns)
        (message,) = messages
        metadata = {
            name: ["string", item] if isinstance(item, str) else ["json", json.dumps(item)]
            for name, item in message.items()
            if name != "body"
        }
        return await self._call(function, "message", ["string", message["body"]], metadata)

    async def timer(self, *, past_due: bool) -> Outcome:
        # As Newtonsoft writes `TimerInfo`, whose status is null where the schedule is not monitored.
        sent = {"Schedule": {"AdjustForDST": True}, "ScheduleStatus": None, "IsPastDue": past_due}
        return await self._call("timer", "timer", ["json", json.dumps(sent)], {})

    async def http(self, function: str, method: str, path: str, body: str = "", **headers: str) -> Outcome:
        parts = urlsplit(_ADDRESS + path)
        request = {
            "method": method,
            "url": _ADDRESS + path,
            "headers": {name.replace("_", "-"): value for name, value in headers.items()},
            "query": dict(parse_qsl(parts.query)),
            "params": {"name": parts.path.rpartition("/")[2]},
            "body": ["string", body],
        }
        outcome = await self._call(function, "req", ["http", request], {})
        # The host's part: a failure is 500 without a body, and a text is text/plain.
        if not outcome.ok:
            return Outcome(ok=False, seen=outcome.seen, status=500)
        if not outcome.headers:
            return Outcome(
                True, outcome.seen, outcome.status, {"content-type": "text/plain; charset=utf-8"}, outcome.body
            )
        return outcome

    async def _call(self, function: str, parameter: str, value: list[Any], metadata: dict[str, Any]) -> Outcome:
        assert self._process.stdin is not None
        asked = {"function": function, "parameter": parameter, "value": value, "metadata": metadata}
        self._process.stdin.write(f"{json.dumps(asked)}\n")
        self._process.stdin.flush()
        found = self._read()
        found.pop("error")
        return Outcome(**found)

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"Microsoft's engine has ended with exit code {self._process.wait()}.")
        return json.loads(line)
