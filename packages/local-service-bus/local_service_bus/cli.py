"""The command line: `python -m local_service_bus`."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from local_service_bus.administration import Administration
from local_service_bus.amqp.authorization import SharedKey
from local_service_bus.amqp.server import HOST, new_server
from local_service_bus.clock import Clock
from local_service_bus.config_file import read_topology
from local_service_bus.topology import BadTopologyError, Holding, Topology

AMQP_PORT: Final = 5672

_BANNER: Final = """\
A local Azure Service Bus for development and tests. All is gone with the process.
It listens on 127.0.0.1 only, over plain AMQP. Never put real data or a real key into it."""

_EPILOG: Final = """\
On start one line of JSON goes to standard output: {"port": 5672, "connection_string": "Endpoint=sb://localhost..."},
with --admin also {"admin": "http://127.0.0.1:5300"}, where faults are armed, time is moved, and history is read.
SIGINT or SIGTERM ends the process. The file is the Config.json of Microsoft's emulator; the README
says what of it the endpoint knows."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the endpoint until a signal ends it."""
    options = _parser().parse_args(arguments)
    console = Console(stderr=True)
    console.print(_BANNER, soft_wrap=True)
    try:
        topology = read_topology(options.config)
    except BadTopologyError as error:
        console.print(str(error), style="red", markup=False, soft_wrap=True)
        return 1
    try:
        asyncio.run(_serve(topology, options.port, options.admin, console))
    except OSError as error:
        console.print(
            f"A port cannot be listened on: {error.strerror}. Give others by --port and --admin.", style="red"
        )
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m local_service_bus",
        description=_BANNER,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--config",
        type=Path,
        required=True,
        metavar="FILE",
        help="queues and topics, as Microsoft's emulator reads them",
    )
    parser.add_argument("--port", type=int, default=AMQP_PORT, help="0 picks a free one (default: %(default)s)")
    parser.add_argument(
        "--admin",
        type=int,
        metavar="PORT",
        help="serve faults, clock and history by HTTP there, too; 0 picks a free one",
    )
    return parser


async def _serve(topology: Topology, port: int, admin: int | None, console: Console) -> None:
    shared_key, clock = SharedKey(), Clock()
    server = new_server(topology, clock, 0, shared_key)
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with AsyncExitStack() as stack:
        bound = await server.start(port)
        stack.push_async_callback(server.stop)
        console.print(_table(topology))
        told = {"port": bound, "connection_string": shared_key.connection_string(bound)}
        if admin is not None:
            served = await stack.enter_async_context(Administration(server, clock).serving(admin))
            told["admin"] = f"http://{HOST}:{served}"
        print(json.dumps(told), file=sys.stdout, flush=True)
        await stopped.wait()


def _table(topology: Topology) -> Table:
    table = Table("entity", "sessions", "lock", "deliveries", "time to live")
    for queue in topology.queues:
        table.add_row(queue.name, *_cells(queue))
    for topic in topology.topics:
        table.add_row(topic.name, "", "", "", "")
        for subscription in topic.subscriptions:
            table.add_row(f"{topic.name}/Subscriptions/{subscription.name}", *_cells(subscription))
    return table


def _cells(settings: Holding) -> tuple[str, str, str, str]:
    lives = "for ever" if settings.time_to_live is None else f"{settings.time_to_live:g} s"
    sessions = "yes" if settings.requires_session else "no"
    return sessions, f"{settings.lock_duration:g} s", str(settings.max_delivery_count), lives
