"""The command line: `python -m local_cosmos`."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import ssl
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from local_cosmos.protocol.authorization import WELL_KNOWN_KEY
from local_cosmos.protocol.certificates import OwnCertificate
from local_cosmos.protocol.server import CosmosServer, PortTakenError
from local_cosmos.replaying import Replay
from local_cosmos.semantics.account import AccountSettings
from local_cosmos.semantics.clock import Clock
from local_cosmos.semantics.emulator import Emulator
from local_cosmos.semantics.requests import CONSISTENCY_LEVELS
from local_cosmos.semantics.story import Recorder
from local_cosmos.storage.keeper import Keeper
from local_cosmos.storage.sqlite import DataInUseError, SqliteKeeper

_BANNER: Final = """\
A local Cosmos DB (NoSQL API) for development and tests. Without --data all is gone with the process.
It listens on 127.0.0.1 only, over plain http or, with --tls, https. Never put real data or a real key into it."""

_EPILOG: Final = """\
On start one line of JSON goes to standard output: {"endpoint": "http://127.0.0.1:8081/", "admin": false}.
SIGINT or SIGTERM ends the process. With --admin, /_admin/ takes fault rules, lag, latency and clock, and gives
the log of requests and the history of accepted writes; see the README."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the emulator until a signal ends it."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.certificate and not options.tls:
        parser.error("--certificate needs --tls")
    if options.record and options.data:
        parser.error("--record begins with an empty account, so it does not go with --data")
    if options.replay:
        return _replay(options.replay)
    print(_BANNER, file=sys.stderr, flush=True)
    try:
        asyncio.run(_serve(options))
    except (DataInUseError, PortTakenError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m local_cosmos",
        description=_BANNER,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--port", type=int, default=8081, help="0 picks a free one (default: %(default)s)")
    parser.add_argument("--admin", action="store_true", help="serve /_admin/ and keep history and request log")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="keep everything there, in SQLite (default: in memory, gone with the process)",
    )
    parser.add_argument("--key", default=WELL_KNOWN_KEY, help="master key in base64 (default: the well-known one)")
    parser.add_argument(
        "--partitions", type=int, default=1, help="physical partitions of a new container (default: %(default)s)"
    )
    parser.add_argument(
        "--consistency", choices=CONSISTENCY_LEVELS, default="Session", help="of the account (default: %(default)s)"
    )
    parser.add_argument(
        "--multiple-write-locations", action="store_true", help="let the account say that it has several write regions"
    )
    parser.add_argument(
        "--tls", action="store_true", help="https, with a certificate of its own for localhost and 127.0.0.1"
    )
    parser.add_argument(
        "--certificate",
        type=Path,
        metavar="FILE",
        help="with --tls: write the certificate there, for clients that check it",
    )
    parser.add_argument("--record", type=Path, metavar="FILE", help="write all that happens there, as a story")
    parser.add_argument(
        "--replay", type=Path, metavar="FILE", help="play a story again, print what is answered otherwise, and end"
    )
    return parser


def _replay(story: Path) -> int:
    """Play a story; 1 if a request is answered otherwise."""
    try:
        different = Replay(story).differences()
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    for step in different:
        print(f"{story}:{step.line}: {step.operation} was answered {step.recorded}, and now {step.replayed}")
    return 1 if different else 0


def _tls(options: argparse.Namespace) -> ssl.SSLContext | None:
    if not options.tls:
        return None
    own = OwnCertificate.make()
    if options.certificate:
        options.certificate.write_bytes(own.pem)
    return own.context


async def _serve(options: argparse.Namespace) -> None:
    beginning = time.monotonic()
    settings = AccountSettings(options.consistency, options.multiple_write_locations, options.partitions)
    keeper: Keeper = SqliteKeeper(options.data) if options.data else Keeper()
    recorder = Recorder(options.record.open("w", encoding="utf-8"), settings) if options.record else None
    source = recorder.time if recorder else time.time
    clock = Clock(source, advanced=keeper.clock_advanced, keep=keeper.keep_clock)
    emulator = Emulator(
        settings, clock, lambda: time.monotonic() - beginning, options.admin, keeper=keeper, recorder=recorder
    )
    server = CosmosServer(emulator, options.key, admin=options.admin, tls=_tls(options))
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    try:
        endpoint = await server.start(options.port)
        print(json.dumps({"endpoint": endpoint, "admin": options.admin}), flush=True)
        await stopped.wait()
    finally:
        await server.stop()
        keeper.close()
