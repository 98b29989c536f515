"""The trial of a copied test: it is written, shrunk and run in a process of its own, without a network.

`python -m exactlyonce_dev.trial FOLDER`, in the folder of an app, reads `story.json` of the other folder, and writes
`result.json` there. Handlers run in it, as they do in the app; a process of its own ends in time whatever they do.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from exactlyonce.errors import ConfigurationError
from exactlyonce.handling.routes import Destination
from exactlyonce.hosting import ExactlyOnce
from exactlyonce.testing import App
from exactlyonce.values.envelope import EntityRef
from exactlyonce_dev.copying import Style, copied
from exactlyonce_dev.flow import Flow, Row, Tries
from exactlyonce_dev.literals import Names
from exactlyonce_dev.story import UNDER_WAY

SECONDS: Final = 600.0
"""In which a trial ends, one way or the other."""
_SEARCH_SECONDS: Final = 60.0
"""In which a test is shrunk: of processor time, so that a busy machine finds the same test."""
_TEST_SECONDS: Final = 180.0
"""In which a test ends in a fresh interpreter. A busy machine takes long to import the application."""
_LONGEST_OUTPUT: Final = 10_000
_STORY, _RESULT, _TEST = "story.json", "result.json", "test_story.py"
_NETWORK: Final = frozenset({"socket.connect", "socket.getaddrinfo", "socket.sendto"})


@dataclass(frozen=True)
class Written:
    """The source code of a test, its problem, empty if it passes, and what it does not have as it happened."""

    text: str
    problem: str = ""
    notes: tuple[str, ...] = ()


class Writer:
    """Writes the shortest test of a delivery that passes; `rows` are all deliveries, the first one first."""

    def __init__(
        self,
        once: ExactlyOnce,
        names: Names,
        rows: Sequence[Row],
        tries: Tries,
        seconds: Callable[[], float] = time.process_time,
    ) -> None:
        self._once = once
        self._names = names
        self._rows = rows
        self._tries = tries
        self._now = seconds
        self._ends = seconds() + _SEARCH_SECONDS

    def write(self, id: str) -> Written:
        """Write the test of a delivery. One that does not pass says so.

        Raises:
            ConfigurationError: the delivery is not known any more, or a message of its story was too large to be kept.
        """
        flows = [Flow.of(self._rows, id, self._tries, whole=whole) for whole in (False, True)]
        for flow in flows:
            for style in self._styles(flow):
                if not self._problem(flow, style):
                    return self._shrunk(flow, style)
        # The most of what happened, and no word of it left out.
        flow, style = flows[0], Style(slow=True)
        problem, end = self._problem(flow, style), self._played(flow, style)
        return Written(self._copied(flow, style), problem, self._on_their_way(flow) or _differences(flow, end))

    def _on_their_way(self, flow: Flow) -> tuple[str, ...]:
        """The destinations that messages of the flow have not reached yet: a test in memory waits for these messages."""
        destinations = [
            item for item in self._once.destinations if isinstance(item, Destination) and item.to is not None
        ]
        arrived = {row["message"] for row in self._rows if row["outcome"] != UNDER_WAY}
        sent = {
            output["destination"] for row in flow.rows for output in row["outputs"] if output["message"] not in arrived
        }
        return tuple(
            f"A message is still on its way to {item.name}: copy the story again when the message has been processed."
            for item in destinations
            if item.name in sent
        )

    def _styles(self, flow: Flow) -> Iterator[Style]:
        """Ways to write a flow, the shortest first."""
        yield Style(timed=False)
        yield Style()
        yield Style(slow=True)
        for style in (Style(), Style(slow=True)):
            end = self._end_but_for_times(flow, style)
            if end is not None:
                yield replace(style, end=end)
                yield replace(style, end=end, answers=False)

    def _end_but_for_times(self, flow: Flow, style: Style) -> Mapping[EntityRef, Any] | None:
        """The bodies to which a flow leads in memory, where they have other times; None if more than times differ."""
        end = self._played(flow, style)
        if end is None or not all(_differ_in_times_only(body, end[ref]) for ref, body in flow.end.items()):
            return None
        return {ref: end[ref] for ref, body in flow.end.items() if body != end[ref]}

    def _shrunk(self, flow: Flow, style: Style) -> Written:
        """The test with as little as it passes with: what came between is left out first in halves, then one by one."""
        pieces = max(len(flow.others), 1)
        size = pieces
        while size:
            for first in range(0, pieces, size):
                smaller = flow.without(flow.others[first : first + size])
                if len(smaller.rows) < len(flow.rows) and (like := self._passing(smaller, style)):
                    flow, style = smaller, like
            size //= 2
        for ref in list(flow.beginning):
            less = replace(flow, beginning={other: body for other, body in flow.beginning.items() if other != ref})
            if like := self._passing(less, style):
                flow, style = less, like
        style = self._passing(flow, replace(style, brief=True)) or style
        notes = [f"{ref}: its times are those of the test, in which messages take no time." for ref in style.end or ()]
        if not style.answers:
            notes.append("The bodies of answers are not compared, since they differ.")
        return Written(self._copied(flow, style), notes=tuple(notes))

    def _passing(self, flow: Flow, style: Style) -> Style | None:
        """The style in which a smaller test passes; None if it does not, or there is no time to know."""
        if self._now() >= self._ends:
            return None
        if style.end is not None:
            style = replace(style, end=self._end_but_for_times(flow, style))
        return None if self._problem(flow, style) else style

    def _problem(self, flow: Flow, style: Style) -> str:
        """What is wrong with a test; empty if it passes."""
        text = self._copied(flow, style)
        try:
            _run(text)
        except KeyboardInterrupt:
            raise
        except BaseException:  # As pytest's own, of an error that was not raised.
            return traceback.format_exc(limit=-3)
        return ""

    def _copied(self, flow: Flow, style: Style) -> str:
        return copied(flow, self._once, self._names, style)

    def _played(self, flow: Flow, style: Style) -> Mapping[EntityRef, Any] | None:
        """The bodies to which a flow leads in memory; None if it cannot be played."""
        text = self._copied(flow, replace(style, expects=False))
        try:
            app = _run(text)
            return {ref: app.run(_body(app, ref)) for ref in flow.end}
        except KeyboardInterrupt:
            raise
        except BaseException:  # As above.
            return None


async def _body(app: App, ref: EntityRef) -> Any:
    body = (await (await app.once.operator()).inspect(ref)).body
    return None if body is None else body.value


def _run(text: str) -> App:
    """Run the test that a text is, and return its application."""
    made: list[App] = []

    class Kept(App):
        def __init__(self, *given: Any, **more: Any) -> None:
            super().__init__(*given, **more)
            made.append(self)

    space: dict[str, Any] = {}
    exec(compile(text, _TEST, "exec"), space)  # noqa: S102  # Written a moment ago, of the app's own names.
    space["App"] = Kept
    (test,) = (item for name, item in space.items() if name.startswith("test_what_happened"))
    test()
    return made[0]


def _differ_in_times_only(value: Any, other: Any) -> bool:
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(_differ_in_times_only(value[name], other[name]) for name in value)
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(_differ_in_times_only, value, other))
    return value == other or (_is_time(value) and _is_time(other))


def _is_time(value: object) -> bool:
    with suppress(ValueError):
        return isinstance(value, str) and "T" in value and datetime.fromisoformat(value) is not None
    return False


def _differences(flow: Flow, end: Mapping[EntityRef, Any] | None) -> tuple[str, ...]:
    """Which entities end otherwise in memory than they did."""
    if end is None:
        return ("The story cannot be played in memory: the output says where it ends.",)
    return tuple(
        f"{ref} ends otherwise in memory than it did here." for ref, body in flow.end.items() if body != end.get(ref)
    )


class Trials:
    """Tries one test after the other, each in a process in the folder of the app, which is ended after some seconds."""

    def __init__(self, app: Path, environment: Mapping[str, str], seconds: float = SECONDS) -> None:
        self._app = app
        self._environment = environment
        self._seconds = seconds
        self._turn = asyncio.Lock()

    async def result(self, story: Mapping[str, Any]) -> dict[str, Any]:
        """The test of a delivery: `text`, whether it `passes`, after how many `seconds`, its `output`, and `notes`.

        Args:
            story: `rows`, `tries`, and the `id` of the delivery.

        Raises:
            ConfigurationError: there is no test; why.
        """
        if all(row["id"] != story["id"] for row in story["rows"]):
            raise ConfigurationError("This delivery is forgotten: only the latest are kept.")
        async with self._turn:
            with TemporaryDirectory(prefix="exactlyonce-trial-") as folder:  # Only this user can enter it.
                await asyncio.to_thread(_write, Path(folder, _STORY), story)
                output = await self._process(folder)
                result = await asyncio.to_thread(_read, Path(folder, _RESULT))
        if result is None:
            result = {"error": f"No test was written: {output[-_LONGEST_OUTPUT:]}"}
        if "error" in result:
            raise ConfigurationError(result["error"])
        return result

    async def _process(self, folder: str) -> str:
        """Run the process of a trial to its end, and return what it has printed."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "exactlyonce_dev.tied", "exactlyonce_dev.trial", folder),
            cwd=self._app,
            env={**self._environment, "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018  # They were asked for.
        reading = asyncio.create_task(process.stdout.read())
        try:
            await asyncio.wait_for(process.wait(), self._seconds)
            return (await reading).decode(errors="replace")
        except TimeoutError:
            return f"it did not end within {self._seconds:.0f} s."
        finally:
            process.stdin.close()
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, 9)  # Handlers that never return heed no signal.
                await process.wait()
            reading.cancel()


def _write(file: Path, value: object) -> None:
    file.write_text(json.dumps(value), encoding="utf-8")


def _read(file: Path) -> dict[str, Any] | None:
    if not file.is_file():
        return None
    value: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return value


def main(arguments: Sequence[str] | None = None) -> int:
    """Write a test, or run one: `FOLDER`, or `--run FOLDER`."""
    *options, folder = sys.argv[1:] if arguments is None else arguments
    sys.addaudithook(_without_network)
    if options:
        return _run_file(Path(folder))
    try:
        result = _result(_read(Path(folder, _STORY)) or {}, Path(folder))
    except ConfigurationError as error:
        result = {"error": str(error)}
    _write(Path(folder, _RESULT), result)
    return 0


def _result(story: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    from exactlyonce_dev.host import application_of  # noqa: PLC0415  # It loads the host, which a run does without.

    rows = story["rows"]
    message = next(row["message"] for row in rows if row["id"] == story["id"])
    types = (row["entity"]["type"] for row in rows if row["message"] == message and "type" in row["entity"])
    once, names = application_of(Path.cwd(), next(types, ""))
    written = Writer(once, names, rows, story["tries"]).write(story["id"])
    (folder / _TEST).write_text(written.text, encoding="utf-8")
    began = time.monotonic()
    passes, output = _run_apart(folder)
    return {
        "text": written.text,
        "passes": passes,
        "seconds": round(time.monotonic() - began, 1),
        "output": "" if passes else output[-_LONGEST_OUTPUT:],
        "notes": written.notes,
    }


def _run_apart(folder: Path) -> tuple[bool, str]:
    """Run a test in a fresh interpreter; return whether it passes, and what was printed."""
    command = [sys.executable, "-m", "exactlyonce_dev.trial", "--run", str(folder)]
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_TEST_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return False, f"It did not end within {_TEST_SECONDS:.0f} s."
    return ran.returncode == 0, ran.stdout + ran.stderr


def _run_file(folder: Path) -> int:
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    import pytest  # noqa: PLC0415  # It reads its environment.

    settings = ("-c", os.devnull, "--rootdir", str(folder), "-p", "no:cacheprovider")
    return int(pytest.main(["-q", "--no-header", *settings, str(folder / _TEST)]))


def _without_network(event: str, _: object) -> None:
    if event in _NETWORK:
        raise PermissionError("A copied test has no network: let its handlers get what they need by messages.")


if __name__ == "__main__":
    sys.exit(main())
