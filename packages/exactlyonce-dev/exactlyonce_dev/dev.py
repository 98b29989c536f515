"""`exactlyonce dev`: runs the app of a folder with all that it needs, until Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path
from typing import Final

from exactlyonce.cli.command import DONE, NOT_DONE, NOT_POSSIBLE
from exactlyonce.errors import ConfigurationError
from exactlyonce_dev.console.server import Console, Stage, State
from exactlyonce_dev.parts import Hear, Part, say
from exactlyonce_dev.plan import DATABASE, LOOPBACK, Plan
from exactlyonce_dev.story import Story
from exactlyonce_dev.trial import Trials
from exactlyonce_dev.trouble import Trouble
from exactlyonce_dev.witness import Event
from local_cosmos.admin_client import AdminClient

_SELF: Final = "dev"
"""The name of the supervisor in the log."""
_POLL_SECONDS: Final = 0.5
_SKIPPED: Final = frozenset({"__pycache__", "node_modules", "tests", "venv"})
_SUFFIXES: Final = (".py", ".json")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the app of the present folder. Returns 0 after Ctrl-C, 1 when a part broke, 2 when something is missing."""
    given = _parser().parse_args(arguments)
    began = time.monotonic()
    try:
        plan = Plan.of(Path.cwd(), given.http_port, console=given.console_port)
        plan.require_servers()
        plan.require_free_ports()
        return asyncio.run(Supervisor(plan, began, json_line=given.json, reload=not given.no_reload).run())
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return NOT_POSSIBLE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "exactlyonce dev",
        description="Run the app of this folder with a local Cosmos DB, Azurite and, if it is used, a local Service Bus. "
        "Containers, queues and topics are those that the app declares. All data is gone at the end.",
    )
    parser.add_argument("--http-port", type=_port, default=7071, metavar="PORT", help="0 for a free one (%(default)s)")
    parser.add_argument(
        "--console-port", type=_port, default=7072, metavar="PORT", help="0 for a free one (%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print one line of JSON to stdout once the app is ready")
    parser.add_argument("--no-reload", action="store_true", help="end with the app; do not start it again")
    return parser


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) < 65_536):  # noqa: PLR2004
        raise argparse.ArgumentTypeError(f"{text!r} is no port; it has to be a number from 0 to 65535")
    return int(text)


class Supervisor:
    """Starts the parts of a local stack, keeps the app running, and ends all of them.

    Args:
        plan: what has to run.
        began: when the command began, by the monotonic clock.
        json_line: whether stdout gets a line of JSON once the app is ready.
        reload: whether the app starts again when one of its files changes.
    """

    def __init__(self, plan: Plan, began: float, *, json_line: bool = False, reload: bool = True) -> None:
        self._plan = plan
        self._began = began
        self._json_line = json_line
        self._reload = reload
        self._servers: list[Part] = []
        self._story = Story()
        self._app: Part | None = None
        self._is_killed = False
        self._was_killed = False  # And has not answered again since.

    async def run(self) -> int:
        """Run until a signal, and return the exit code.

        Raises:
            ConfigurationError: a part is missing on this machine.
        """
        stopped = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        stop = asyncio.create_task(stopped.wait())
        async with AsyncExitStack() as running:
            storage = running.enter_context(ExitStack())
            await self._serve(running, "cosmos", "local_cosmos", "--port", str(self._plan.cosmos), "--admin")
            if self._plan.bus is not None:
                topology = running.enter_context(_scratch_file("bus.json"))
                if not await self._describe_bus(topology, stop):
                    return DONE
                await self._serve(
                    running, "bus", "local_service_bus", "--config", str(topology), "--port", str(self._plan.bus)
                )
            # Azurite starts while the host imports the app; the host waits for it.
            azurite = asyncio.create_task(asyncio.to_thread(_start_azurite, self._plan, storage))
            backstage = running.enter_context(_scratch_file("backstage"))
            say(_SELF, f"console {await self._show(running, backstage)}")
            try:
                while (code := await self._run_app(stop, azurite, backstage)) is None:
                    self._began = time.monotonic()
                return code
            finally:
                await asyncio.wait({azurite})
                say(_SELF, "ending")

    async def _show(self, running: AsyncExitStack, backstage: Path) -> str:
        """Serve the console, and return its address."""
        admin = AdminClient(f"http://{LOOPBACK}:{self._plan.cosmos}/")
        trouble = Trouble(admin, self._plan.settings.get(DATABASE, ""))
        stage = Stage(self._story, trouble, self._kill, self._state, Trials(self._plan.app, self._plan.settings))
        console = Console(backstage, f"the app in {self._plan.app.name}", stage=stage)
        return await running.enter_async_context(console.serving(self._plan.console))

    def _kill(self) -> bool:
        """Kill the app, which then starts again; say whether it ran."""
        if self._app is None or self._app.ended.done():
            return False
        self._is_killed = True
        self._app.kill()
        return True

    def _state(self) -> State:
        """The state of the app's process. It runs from the moment at which it answers requests."""
        if self._is_killed or self._was_killed:
            return "killed"
        if self._app is not None and self._app.ended.done():
            return "ended"
        return "runs" if self._app is not None and self._app.ready.done() else "starts"

    def _hear(self, event: Event) -> None:
        """Take what the app tells: also that it is about to kill itself, since somebody chose the step."""
        if "end" in event:
            self._is_killed = True
        else:
            self._story.hear(event)

    async def _serve(self, running: AsyncExitStack, name: str, *arguments: str) -> None:
        server = await self._start(name, *arguments)
        running.push_async_callback(server.end)
        self._servers.append(server)

    async def _start(self, name: str, *arguments: str, hear: Hear | None = None) -> Part:
        return await Part.start(name, arguments, self._plan.app, self._plan.settings, hear=hear)

    async def _describe_bus(self, topology: Path, stop: asyncio.Task[bool]) -> bool:
        """Write the queues and topics that the app declares. Returns whether that is done; not if a signal came first.

        Raises:
            ConfigurationError: the app cannot be imported; the log says why.
        """
        app = await self._start("app", "exactlyonce_dev.host", "--topology", str(topology))
        try:
            await asyncio.wait({stop, app.ended}, return_when=asyncio.FIRST_COMPLETED)
            if stop.done():
                return False
            if app.ended.result():
                raise ConfigurationError("The queues of the local Service Bus are not known: see above.")
            return True
        finally:
            await app.end()

    async def _run_app(self, stop: asyncio.Task[bool], azurite: asyncio.Task[None], backstage: Path) -> int | None:
        """Run the app until it has to end; None if it is to start again. Raises `ConfigurationError` as `run` does."""
        known = snapshot(self._plan.app)
        arguments = ("--http-port", str(self._plan.http), "--backstage", str(backstage))
        app = self._app = await self._start("app", "exactlyonce_dev.host", *arguments, hear=self._hear)
        announced = asyncio.create_task(self._announce(app))
        changed = asyncio.create_task(change(self._plan.app, known)) if self._reload else None
        broken = {server.ended for server in self._servers}
        ends = {stop, azurite, app.ended, *broken, *({changed} if changed else ())}
        try:
            while True:
                done, ends = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                if azurite in done:
                    azurite.result()  # It serves, or is missing.
                if stop in done:
                    return DONE
                if broken & done:
                    say(_SELF, f"{', '.join(server.name for server in self._servers if server.ended in done)} ended")
                    return NOT_DONE
                if changed is not None and changed in done:
                    say(_SELF, f"{changed.result().name} has changed: the app starts again")
                    return None
                if app.ended in done:
                    await app.end()  # Its last words are read: it may have said that it kills itself.
                    if self._is_killed:
                        self._is_killed, self._was_killed = False, True
                        say(_SELF, "the app was killed, and starts again")
                        return None
                    if not self._reload:
                        return NOT_POSSIBLE if app.ended.result() == NOT_POSSIBLE else NOT_DONE
                    say(_SELF, "the app ended; it starts again when one of its files changes")
        finally:
            announced.cancel()
            if changed is not None:
                changed.cancel()
            await app.end()
            self._app = None
            self._story.end_process()

    async def _announce(self, app: Part) -> None:
        ready = await app.ready
        self._was_killed = False
        if ready is None:
            return  # It has said why.
        seconds = time.monotonic() - self._began
        for line in (*ready["routes"], f"ready in {seconds:.1f} s: Ctrl-C ends everything, with all data"):
            say(_SELF, line)
        if self._json_line:
            print(json.dumps(ready | {"seconds": round(seconds, 1)}), flush=True)


def _start_azurite(plan: Plan, running: ExitStack) -> None:
    from function_host.azurite import AzuriteError, azurite  # noqa: PLC0415  # It loads slowly, so it loads beside the app.

    blobs = plan.blobs
    try:
        running.enter_context(azurite(blob=blobs is not None, queue_port=plan.queues, blob_port=blobs or 0))
    except AzuriteError as error:
        raise ConfigurationError(str(error)) from None


@contextmanager
def _scratch_file(name: str) -> Iterator[Path]:
    """A path in a folder that only this user can enter."""
    with tempfile.TemporaryDirectory(prefix="exactlyonce-dev-") as folder:
        yield Path(folder, name)


def snapshot(app: Path) -> dict[str, int]:
    """The files of an app by which it may behave differently, with the times of their last changes."""
    found = {}
    for folder, folders, files in os.walk(app):
        folders[:] = [name for name in folders if name not in _SKIPPED and not name.startswith(".")]
        for name in files:
            if name.endswith(_SUFFIXES):
                path = os.path.join(folder, name)  # noqa: PTH118  # Twice as fast, and run all the time.
                try:
                    found[path] = os.stat(path).st_mtime_ns  # noqa: PTH116
                except FileNotFoundError:
                    continue
    return found


async def change(app: Path, known: dict[str, int], every: float = _POLL_SECONDS) -> Path:
    """Wait until a file differs from a snapshot, and return its path."""
    while True:
        now = snapshot(app)
        if changed := {name for name, _ in now.items() ^ known.items()}:
            return Path(min(changed))
        await asyncio.sleep(every)
