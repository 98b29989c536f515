"""Fires shots at the sample on Microsoft's own engine of Python functions, as the real host would have it do.

    cd APP; python -I archive_engine.py SHOTS

One shot is fired over HTTP, the others come by the queue. It takes each message to its queue's function twice, then prints the
score, in one line of JSON. Needs the part `engine` of the lock on Python 3.13. Source of the protocol:
`azure_functions_runtime.native_invocation`, the engine's entry for hosts without protobuf.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from base64 import b64decode
from types import SimpleNamespace
from typing import Any

from azure.storage.queue.aio import QueueClient
from azure_functions_runtime import handle_event  # type: ignore[import-not-found]
from azure_functions_runtime.bindings.datumdef import Datum  # type: ignore[import-not-found]
from azure_functions_runtime.native_invocation import (  # type: ignore[import-not-found]
    invocation_request_native,
)
from azure_functions_runtime.utils.threadpool import start_threadpool_executor  # type: ignore[import-not-found]


class Messages:
    """Stands in for the module of protobuf messages, of which only parts of the set-up make use."""

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


async def invoke(function: str, parameter: str, given: Datum, metadata: dict[str, Datum]) -> Any:
    """Invoke a function; what it returned."""
    ok, returned, _, error, trace = await invocation_request_native("i-1", function, [(parameter, given)], metadata)
    if not ok:
        raise SystemExit(f"{error}\n{trace}")
    return returned


async def ask(function: str, method: str, body: str = "", **headers: str) -> Any:
    """Make an HTTP request about the game `g-1`; the body of the reply, if there is one."""
    texts = {name.replace("_", "-"): Datum(value, "string") for name, value in headers.items()}
    request = {
        "method": Datum(method, "string"),
        "url": Datum("http://127.0.0.1/api/games/g-1", "string"),
        "headers": texts,
        "query": {},
        "params": {"game": Datum("g-1", "string")},
        "body": Datum(body, "string"),
    }
    reply = (await invoke(function, "req", Datum(request, "http"), {})).value
    if reply["status_code"].value not in ("200", "201"):
        raise SystemExit(f"{function} replied {reply['status_code'].value}")
    return reply["body"].value


async def drain(queue: str, function: str) -> None:
    """Take every message of a queue to its function, twice, and delete it."""
    async with QueueClient.from_connection_string(os.environ["AzureWebJobsStorage"], queue) as client:  # noqa: SIM112
        async for message in client.receive_messages():
            given = Datum(b64decode(message.content).decode(), "string")  # As host.json says.
            metadata = {"Id": Datum(message.id, "string"), "DequeueCount": Datum("1", "json")}
            for _ in range(2):
                await invoke(function, "message", given, metadata)
            await client.delete_message(message)


async def play(shots: int) -> None:
    functions = await load(os.getcwd())  # noqa: PTH109
    await ask(functions["fire"], "POST", '{"position": 0}', Idempotency_Key="k-0")
    once, messages = sys.modules["function_app"].once, sys.modules["handlers.messages"]
    for number in range(1, shots):
        shot = messages.FireAt(game_id="g-1", position=0)
        await once.send("shooting-range", shot, message_id=f"k-{number}", source="engine")
    await drain("shooting-range", functions["process_shooting_range"])
    await drain("leader-board", functions["process_leader_board"])
    score = json.loads(await ask(functions["show_score"], "GET"))
    await once.close()
    print(json.dumps(score))


sys.path.insert(0, os.getcwd())  # noqa: PTH109  # As the worker does.
asyncio.run(play(int(sys.argv[1])))
