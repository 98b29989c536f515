"""`exactlyonce dev` on a new app: real processes, from the first line of its log to the last."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from exactlyonce_dev_tests.apps import dev, put

pytestmark = pytest.mark.acceptance


def get(address: str, path: str) -> object:
    try:
        with urllib.request.urlopen(f"{address}/api/{path}") as response:  # noqa: S310
            return json.load(response)
    except urllib.error.HTTPError as error:
        return error.code


def until(holds: Callable[[], bool]) -> None:
    while not holds():  # The time limit of the test ends it.
        time.sleep(0.1)


def test_a_new_app_runs_drops_a_duplicate_reloads_and_ends_with_all_its_parts(app: Path) -> None:
    with dev(app) as running:
        address = running.ready()
        assert put(address, "orders/o-1/lines/l-1", {"item": "tea", "quantity": 2}) == 202
        until(lambda: get(address, "stocks/tea") == {"reserved": 2})
        assert put(address, "orders/o-1/lines/l-1", {"item": "tea", "quantity": 2}) == 202
        until(lambda: "message http/l-1 for order/o-1 changed nothing: it is a duplicate" in running.log)
        assert get(address, "orders/o-1") == {"lines": {"tea": 2}}
        source = app / "orders.py"
        source.write_text(source.read_text().replace("+ reserve.quantity", "+ reserve.quantity * 10"))
        address = running.ready()
        put(address, "orders/o-1/lines/l-2", {"item": "tea", "quantity": 1})
        until(lambda: get(address, "stocks/tea") == {"reserved": 12})
        source.write_text("import nothing_like_it\n")
        until(lambda: "it starts again when one of its files changes" in running.log)
        assert running.end() == 0
    assert "cannot be imported: ModuleNotFoundError: No module named 'nothing_like_it' at orders.py:1" in running.log
    assert "Traceback" not in running.log
    assert running.log.splitlines()[-1] == "dev    | ending"


def test_a_handler_that_raises_takes_one_line_of_the_log(app: Path) -> None:
    source = app / "orders.py"
    source.write_text(source.read_text().replace("    return Stock(", "    1 / 0\n    return Stock("))
    with dev(app) as running:
        put(running.ready(), "orders/o-1/lines/l-1", {"item": "tea", "quantity": 2})
        until(lambda: "ZeroDivisionError" in running.log)
        assert running.end() == 0
    (line,) = (line for line in running.log.splitlines() if "process_stocks" in line)
    assert "HandlerFailed" in line
    assert line.endswith(f" at orders.py:{source.read_text().splitlines().index('    1 / 0') + 1}")
    assert "Traceback" not in running.log


def test_without_node_one_sentence_says_so(app: Path) -> None:
    with dev(app, path="/nowhere") as running:
        assert running.process.wait(60) == 2
    assert "Azurite needs Node.js: install version 20 or newer" in running.log
    assert "Traceback" not in running.log


def test_wrong_settings_are_told_without_a_trace_and_end_the_command(app: Path) -> None:
    settings = json.loads((app / "local.settings.json").read_text())
    settings["Values"] |= {"COSMOS__database": "", "EXACTLYONCE__retention": "soon"}
    (app / "local.settings.json").write_text(json.dumps(settings))
    with dev(app, "--no-reload") as running:
        assert running.process.wait(60) == 2
    assert "- EXACTLYONCE__retention is wrong" in running.log
    assert "Traceback" not in running.log
