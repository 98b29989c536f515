"""The pictures of docs/architecture.md: the rooms, drawn from the imports, and the way of one message, recorded as it runs.

    python -m devtools.architecture

writes them between the marks of the page. A test compares the page with the code.
"""

from __future__ import annotations

import ast
import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from devtools.message_path import Call, record

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "architecture.md"
LIBRARY: Final = "exactlyonce"
FOLDERS: Final = (LIBRARY, "handlers", "spark_jobs", "verification", "demo", "benchmarks")
"""Folders whose imports are drawn; so are those of function_app.py."""
TRIGGER: Final = "trigger"
DRIVERS: Final = "drivers"
"""The room that starts tasks of the event loop, whose calls have no caller."""
SILENT: Final = ("values", "records", "effects", "testing")
"""Rooms that the picture of a message leaves out: vocabulary, and the clock."""


def room_of(path: str) -> str:
    """The room of a file, by its path from the root: a folder or module of the library, or a folder next to the library."""
    first, *rest = path.removesuffix(".py").removesuffix("/__init__").split("/")
    return rest[0] if first == LIBRARY and rest else first


def arrows() -> dict[str, set[str]]:
    """The rooms that each room imports."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in (*(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")), ROOT / "function_app.py"):
        room = room_of(path.relative_to(ROOT).as_posix())
        found[room] |= {room_of(name) for name in _imported(ast.parse(path.read_text(encoding="utf-8")))} - {room}
    return dict(found)


def _imported(tree: ast.AST) -> Iterator[str]:
    """Paths of the modules of this repository that a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        else:
            continue
        yield from (name.replace(".", "/") for name in names if name.partition(".")[0] in FOLDERS)


def reduced(graph: Mapping[str, Iterable[str]]) -> dict[str, set[str]]:
    """The arrows of a graph without circles that no longer path implies."""
    return {
        room: {near for near in nears if not any(near in reached(graph, other) for other in nears)}
        for room, nears in graph.items()
    }


def reached(graph: Mapping[str, Iterable[str]], room: str) -> set[str]:
    """All rooms below a room."""
    return {far for near in graph.get(room, ()) for far in {near, *reached(graph, near)}}


def rooms_picture(graph: Mapping[str, Iterable[str]]) -> str:
    """The rooms and the arrows between them, as Mermaid."""
    outside = {*FOLDERS, "function_app"} - {LIBRARY}
    inside = [
        f'    {room}["public names"]' if room == LIBRARY else f"    {room}" for room in sorted({*graph} - outside)
    ]
    drawn = [f"  {room} --> {near}" for room, nears in sorted(reduced(graph).items()) for near in sorted(nears)]
    return "\n".join(["flowchart TD", f'  subgraph library ["{LIBRARY}/"]', *inside, "  end", *drawn])


def message_picture(calls: Iterable[Call]) -> str:
    """The calls of a message from one room to another, as Mermaid."""
    lines: list[str] = []
    rooms = [TRIGGER]
    for call in calls:
        room, callers = room_of(call.path), [room_of(path) for path in call.callers]
        starter = DRIVERS if lines else TRIGGER
        caller = next((item for item in callers if item not in SILENT), starter)
        if room != caller and room not in SILENT and not call.is_property:
            rooms += [] if room in rooms else [room]
            lines.append(f"  {caller}->>{room}: {call.name.removesuffix('.__call__')}")
    return "\n".join(["sequenceDiagram", *(f"  participant {room}" for room in rooms), *lines])


def files_entered(calls: Iterable[Call]) -> list[str]:
    """Files of the library that a message enters, in order. `testing` lends the clock, which is not counted."""
    inside = (call.path for call in calls if call.path.startswith(f"{LIBRARY}/") and room_of(call.path) != "testing")
    return list(dict.fromkeys(inside))


def files_table(files: Iterable[str]) -> str:
    """The files by room, each with its number on the way, as a table."""
    rooms: dict[str, list[str]] = defaultdict(list)
    for number, path in enumerate(files, 1):
        rooms[room_of(path)].append(f"{number} `{path.removeprefix(f'{LIBRARY}/').removeprefix(f'{room_of(path)}/')}`")
    rows = [f"| `{room}` | {', '.join(entered)} |" for room, entered in rooms.items()]
    return "\n".join(["| room | files, by the order in which they are entered |", "| --- | --- |", *rows])


def blocks() -> dict[str, str]:
    """What stands between the marks of the page, by mark."""
    calls = asyncio.run(record())
    return {
        "rooms": f"```mermaid\n{rooms_picture(arrows())}\n```",
        "message": f"```mermaid\n{message_picture(calls)}\n```",
        "files": files_table(files_entered(calls)),
    }


def drawn(page: str) -> str:
    """The page with its blocks written anew."""
    for mark, text in blocks().items():
        before, begin, rest = page.partition(f"<!-- {mark} -->\n")
        _, end, after = rest.partition(f"<!-- /{mark} -->\n")
        page = f"{before}{begin}{text}\n{end}{after}"
    return page


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
