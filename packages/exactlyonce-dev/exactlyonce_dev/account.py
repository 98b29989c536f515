"""`exactlyonce console`: the console on the accounts of an application, with the identity of the operator."""

from __future__ import annotations

import argparse
import asyncio
import logging
import secrets
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from exactlyonce.cli.command import DONE, NOT_DONE, NOT_POSSIBLE
from exactlyonce.cli.commands import application_in
from exactlyonce.errors import ConfigurationError, ExactlyOnceError
from exactlyonce.hosting import ExactlyOnce
from exactlyonce_dev.backstage import Backstage
from exactlyonce_dev.console.server import Console


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve the console until Ctrl-C. Returns 0 after it, 1 when an account did not answer, 2 when something is missing."""
    given = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.ERROR, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    try:
        asyncio.run(_serve(application_in(given.app), given.port, acts=given.act))
    except ConfigurationError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return NOT_POSSIBLE
    except ExactlyOnceError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return NOT_DONE
    return DONE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "exactlyonce console",
        description="Look at an application's entities and parked messages in a browser of this machine, with its settings and "
        "the identity that you are logged in as (az login). It reads only, unless --act is given.",
    )
    parser.add_argument("--app", default="function_app", help="its module, or module:name (%(default)s)")
    parser.add_argument("--port", type=int, default=0, help="of the console; 0 for a free one (%(default)s)")
    parser.add_argument(
        "--act", action="store_true", help="also requeue and discard parked messages, as 'exactlyonce ops' does"
    )
    return parser


async def _serve(once: ExactlyOnce, port: int, *, acts: bool) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    settings, _ = once.configuration
    place = f"{settings.database} in {urlsplit(str(settings.account_endpoint)).hostname}"
    try:
        await once.operator()  # A setting that is wrong is told here, and not on the page.
        with TemporaryDirectory(prefix="exactlyonce-console-") as folder:  # Only this user can enter it.
            socket = Path(folder, "backstage")
            console = Console(socket, place, acts=acts, token=secrets.token_urlsafe(24))
            async with Backstage([once], acts=acts).serving(socket), console.serving(port) as address:
                print(f"{'requeues and discards' if acts else 'reads only'}: {place}", file=sys.stderr)
                print(address, flush=True)
                await stopped.wait()
    finally:
        await once.close()


if __name__ == "__main__":
    sys.exit(main())
