"""The pictures of docs/architecture.md are what the code says."""

from __future__ import annotations

import ast
import asyncio
import re
import subprocess
import sys
from typing import Final

from devtools.architecture import (
    PAGE,
    TRIGGER,
    arrows,
    files_entered,
    message_picture,
    reached,
    reduced,
    room_of,
)
from devtools.message_path import Call, record
from tests.packaging.sources import LIBRARY, ROOT, files, imports, name_of

TEXT: Final = PAGE.read_text(encoding="utf-8")


def test_the_pictures_are_those_that_the_code_draws() -> None:
    # In a process of its own, since what other tests have left in caches is not entered again.
    drawing = "from devtools.architecture import PAGE, drawn; print(drawn(PAGE.read_text(encoding='utf-8')), end='')"
    ran = subprocess.run([sys.executable, "-c", drawing], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout == TEXT, "Run `python -m devtools.architecture`."


def test_every_import_between_rooms_is_a_path_of_the_picture() -> None:
    shown: dict[str, set[str]] = {}
    for room, near in re.findall(r"^  (\w+) --> (\w+)$", TEXT, re.MULTILINE):
        shown.setdefault(room, set()).add(near)
    library = {path.stem if path.is_file() else path.name for path in LIBRARY.iterdir()} - {"__init__", "__pycache__"}
    for path in files("exactlyonce"):
        room = room_of(name_of(path))
        names = {name.split(".")[1] for name in imports(ast.parse(path.read_text())) if name.startswith("exactlyonce.")}
        assert (names & library) - {room} <= reached(shown, room), name_of(path)


def test_no_room_is_above_itself() -> None:
    graph = arrows()
    assert [room for room in graph if room in reached(graph, room)] == []


def test_an_arrow_that_a_longer_path_implies_is_left_out() -> None:
    graph = {"top": {"middle", "ground"}, "middle": {"ground"}, "ground": set[str]()}
    assert reduced(graph) == {"top": {"middle"}, "middle": {"ground"}, "ground": set()}


def test_a_message_goes_from_the_receiver_through_lane_retry_and_protocol_to_store_and_queue() -> None:
    entered = files_entered(asyncio.run(record()))
    stations = (
        "hosting/deliveries/receiver",
        "drivers/lanes",
        "drivers/driver",
        "protocols/outbox/protocol",
        "stores/memory/store",
    )
    assert {f"exactlyonce/{station}.py" for station in (*stations, "transports/port")} <= {*entered}


def test_calls_inside_a_room_are_not_drawn() -> None:
    first, second = "exactlyonce/hosting/deliveries/receiver.py", "exactlyonce/hosting/deliveries/triggers.py"
    calls = [Call(first, "Receiver.take", ()), Call(second, "envelope_of", (first,))]
    assert message_picture(calls).splitlines()[-1] == f"  {TRIGGER}->>hosting: Receiver.take"


def test_each_function_that_decides_according_to_the_page_is_defined_in_the_library() -> None:
    _, _, section = TEXT.partition("## Where it is decided")
    library = "\n".join(path.read_text() for path in files("exactlyonce"))
    names = re.findall(r"`([A-Za-z_]+)`", section)
    assert {"publish_owed", "skip"} <= {*names}
    assert [name for name in names if not re.search(rf"(?:def|class) {name}\b", library)] == []
