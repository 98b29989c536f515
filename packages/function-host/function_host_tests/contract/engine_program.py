"""Calls functions of the app in this folder on Microsoft's engine, as the real host would: `python engine_program.py`.

Reads one call a line from stdin, writes one outcome a line to stdout, both JSON. Needs Python 3.13 and
`azure-functions-runtime`, and imports nothing of this package. Source of the protocol:
`azure_functions_runtime.native_invocation`, the engine's entry for hosts without protobuf.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from azure_functions_runtime import handle_event  # type: ignore[import-not-found]
from azure_functions_runtime.bindings.datumdef import Datum  # type: ignore[import-not-found]
from azure_functions_runtime.native_invocation import invocation_request_native  # type: ignore[import-not-found]
from azure_functions_runtime.utils.threadpool import start_threadpool_executor  # type: ignore[import-not-found]

_numbers = itertools.count(1)


class Messages:
    """In place of the module of protobuf messages, of which only parts of the set-up make use."""

    def __getattr__(self, name: str) -> type:
        kind = type(name, (SimpleNamespace,), {"in": 0, "out": 1, "inout": 2, "Failure": 0, "Success": 1})
        setattr(self, name, kind)
        return kind


async def load(directory: str) -> dict[str, str]:
    """Have the engine import the app; ids of functions by name."""
    start_threadpool_executor()
    init = SimpleNamespace(capabilities={}, function_app_directory=directory)
    properties = {"host": "127.0.0.1", "protos": Messages()}
    request = SimpleNamespace(properties=properties, request=SimpleNamespace(worker_init_request=init))
    loaded = await handle_event.worker_init_request(request)
    if loaded.result.status != 1:
        raise SystemExit(f"The engine cannot load the app: {loaded.result.exception}")
    found = await handle_event.functions_metadata_request(request)
    return {result.name: result.function_id for result in found.function_metadata_results}


def datum(given: list[Any]) -> Datum:
    """A value of the wire: its kind, and its content."""
    kind, content = given
    if kind == "http":
        return Datum(
            {
                **content,
                "body": datum(content["body"]),
                **{
                    name: {key: Datum(value, "string") for key, value in content[name].items()}
                    for name in ("headers", "query", "params")
                },
                "method": Datum(content["method"], "string"),
                "url": Datum(content["url"], "string"),
            },
            "http",
        )
    if kind.startswith("collection_"):
        return Datum(SimpleNamespace(**{kind.removeprefix("collection_"): content}), kind)
    return Datum(content, kind)


def reply_of(returned: Any) -> dict[str, Any]:
    """What the host answers with, as far as the engine decides it."""
    if returned is None:
        return {}
    if returned.type != "http":
        return {"status": 200, "headers": {}, "body": returned.value}
    value = returned.value
    headers = {name.lower(): item.value for name, item in value["headers"].items()}
    return {"status": int(value["status_code"].value), "headers": headers, "body": value["body"].value.decode()}


async def call(ids: dict[str, str], asked: dict[str, Any]) -> dict[str, Any]:
    """Make one call."""
    module = sys.modules["function_app"]
    module.seen.clear()
    metadata = {name: datum(item) for name, item in asked["metadata"].items()}
    ok, returned, _, error, _ = await invocation_request_native(
        f"i-{next(_numbers)}",
        ids[asked["function"]],
        [(asked["parameter"], datum(asked["value"]))],
        metadata,
        trace_parent="00-11111111111111111111111111111111-2222222222222222-00",
    )
    seen = module.seen[0] if module.seen else None
    return {"ok": ok, "seen": seen, "error": error, **reply_of(returned)}


async def main() -> None:
    ids = await load(str(Path.cwd()))
    print(json.dumps(sorted(ids)), flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(await call(ids, json.loads(line))), flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path.cwd()))  # As the worker does.
    asyncio.run(main())
