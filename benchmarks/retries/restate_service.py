"""The handlers of Restate, in a process of their own: `python -m benchmarks.retries.restate_service PORT`.

It prints its port when it listens; 0 chooses a free one.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from datetime import timedelta
from typing import Any, Final

from benchmarks.peers.port import library

BRIEF: Final = timedelta(seconds=1)
"""How long the keys of `count_briefly` are known."""


def application() -> Any:
    """Tallies, as virtual objects: a key is counted in the object's state."""
    restate = library("restate")
    tallies = restate.VirtualObject("Tally")

    async def count(context: Any, asked: dict[str, Any]) -> dict[str, Any]:
        times = await context.get("times") or {}
        times[asked["key"]] = times.get(asked["key"], 0) + 1
        context.set("times", times)
        return {"id": str(context.uuid()), "total": sum(times.values())}

    tallies.handler("count")(count)
    tallies.handler("count_briefly", idempotency_retention=BRIEF)(count)
    return restate.app([tallies])


def main() -> None:
    """Serve until it is killed."""
    config = library("hypercorn.config").Config()
    with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as listening:
        config.bind = [f"fd://{listening.fileno()}"]
        print(listening.getsockname()[1], flush=True)
        asyncio.run(library("hypercorn.asyncio").serve(application(), config))


if __name__ == "__main__":
    main()
