"""The handlers of Restate, in a process of their own: `python -m benchmarks.peers.restate_service`.

It prints its port when it listens. There is one process and no other worker: what serves ends with it.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from benchmarks.peers.port import library


def application(sink: set[str]) -> Any:
    """Counters, as virtual objects, and a service that says what the sink has."""
    restate = library("restate")
    counters, sinks = restate.VirtualObject("Counter"), restate.Service("Sink")

    async def count(context: Any, message: str) -> None:
        context.set("n", (await context.get("n") or 0) + 1)
        await context.run_typed("send", lambda: sink.add(message))

    async def taken(_: Any) -> int:
        return len(sink)

    counters.handler("count")(count)
    sinks.handler("taken")(taken)
    return restate.app([counters, sinks])


def main() -> None:
    """Serve until it is killed. It hears no other signal, since the SDK takes the place of what hypercorn does about them."""
    config = library("hypercorn.config").Config()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config.bind = [f"fd://{listening.fileno()}"]
        print(listening.getsockname()[1], flush=True)
        asyncio.run(library("hypercorn.asyncio").serve(application(set()), config))


if __name__ == "__main__":
    main()
