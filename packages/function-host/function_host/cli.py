"""`python -m function_host`: serve a function app until SIGTERM or SIGINT."""

import argparse
import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from .app_settings import effective_settings, load_local_settings
from .brief import BriefFormatter
from .errors import HostError
from .host import REAL_INVISIBILITY, HostOptions, function_host
from .host_json import load_host_json
from .kill_switch import KillSwitch, pass_by
from .loading import load_app

logger = logging.getLogger(__name__)

_DESCRIPTION = """\
Serve a Python v2 function app locally: storage queues, Service Bus, timers and HTTP. A stand-in for development and tests;
'func start' is the production-like path. Once ready, one line of JSON is printed to stdout,
{"http": "http://127.0.0.1:PORT", "functions": [...]}; everything else goes to stderr.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code: 0 after a signal, 1 when the host broke, 2 when it cannot start."""
    parsed = _parser().parse_args(arguments)
    level = logging.DEBUG if parsed.verbose else logging.INFO
    handler = logging.StreamHandler(sys.stderr)
    text = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    handler.setFormatter(logging.Formatter(text) if parsed.verbose else BriefFormatter(text, parsed.app.resolve()))
    logging.basicConfig(level=level, handlers=[handler])
    logging.getLogger("azure").setLevel(logging.WARNING)
    # It warns of every wait for a session that ended without one; what fails is told here.
    logging.getLogger("azure.servicebus").setLevel(logging.ERROR)
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    # Whoever started this reads exactly one line from stdout: what functions print goes to stderr.
    ready, sys.stdout = sys.stdout, sys.stderr
    try:
        abandoned = asyncio.run(_serve(parsed, ready))
    except HostError as error:
        logger.error("%s", error)  # noqa: TRY400 - a traceback would hide what to do
        return 2
    except Exception:
        logger.exception("the host broke")
        return 1
    if abandoned:
        # Python would wait for these threads for ever; the real host kills its worker, too.
        logger.warning("%d functions still run in threads and end with the process", abandoned)
        logging.shutdown()
        os._exit(0)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m function_host", description=_DESCRIPTION)
    parser.add_argument("--app", type=Path, required=True, metavar="DIR", help="has function_app.py and host.json")
    parser.add_argument("--settings", type=Path, metavar="FILE", help="default: DIR/local.settings.json, if it exists")
    parser.add_argument("--http-port", type=int, default=0, metavar="PORT", help="default: a free one")
    parser.add_argument(
        "--invisible",
        type=int,
        default=REAL_INVISIBILITY,
        metavar="SECONDS",
        help="whole seconds until the messages of a killed host come back (default and real host: %(default)s)",
    )
    parser.add_argument(
        "--grace", type=float, default=10.0, metavar="SECONDS", help="for running functions at the end (%(default)s)"
    )
    parser.add_argument(
        "--kill",
        type=KillSwitch.parse,
        default=pass_by,
        metavar="POINT[:N]",
        help="die by SIGKILL when the N-th message passes this point: received, handled or copied (to poison)",
    )
    parser.add_argument("--verbose", action="store_true", help="log each invocation, and whole traces")
    return parser


async def _serve(parsed: argparse.Namespace, ready: TextIO) -> int:
    """Host the app until a signal; returns how many functions still run in threads."""
    directory: Path = parsed.app.resolve()
    host_json = load_host_json(directory / "host.json")
    settings = _settings(directory, parsed.settings)
    # The app reads its settings from its environment, as under the real host; so before it is imported.
    os.environ.update(settings)
    options = HostOptions(parsed.http_port, parsed.invisible, parsed.grace, parsed.kill)
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with function_host(load_app(directory), settings, host_json=host_json, options=options) as host:
        print(json.dumps({"http": host.http, "functions": host.functions}), file=ready, flush=True)
        await host.run_until(stopped)
        logger.info("stopping; running functions get %g s", options.grace)
    return host.abandoned_threads


def _settings(directory: Path, named: Path | None) -> dict[str, str]:
    path = named or directory / "local.settings.json"
    local = load_local_settings(path) if named or path.is_file() else {}
    return effective_settings(local, os.environ)
