"""`exactlyonce dev` on a new app: real processes, from the first line of its log to the last."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from azure.storage.queue import QueueServiceClient

from exactlyonce_dev.new import TEMPLATE
from function_host.azurite import ACCOUNT_KEY

pytestmark = pytest.mark.acceptance
COMMAND: Final = "import sys; from exactlyonce_dev.dev import main; sys.exit(main())"
REPOSITORY: Final = Path(__file__).resolve().parents[3]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """The template as an app, on free ports, with this repository's Azurite."""
    if not (REPOSITORY / "node_modules" / "azurite").is_dir():
        pytest.skip("Azurite is not installed: run make .make/node")
    folder = tmp_path / "shop"
    shutil.copytree(TEMPLATE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "node_modules").symlink_to(REPOSITORY / "node_modules")
    storage = f"AccountName=devstoreaccount1;AccountKey={ACCOUNT_KEY};"
    settings = json.loads((folder / "local.settings.json.example").read_text())
    settings["Values"] |= {
        "COSMOS__accountEndpoint": f"http://127.0.0.1:{free_port()}/",
        "COSMOS__database": "shop",
        "AzureWebJobsStorage": f"{storage}QueueEndpoint=http://127.0.0.1:{free_port()}/devstoreaccount1;",
    }
    (folder / "local.settings.json").write_text(json.dumps(settings))
    return folder


class Running:
    """The command while it runs."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self.process = process
        self._log = log

    @property
    def log(self) -> str:
        return self._log.read_text()

    def ready(self) -> str:
        """Wait until the app is ready, and return its address."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.log
        address: str = json.loads(line)["http"]
        return address

    def end(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)


@contextmanager
def dev(app: Path, *arguments: str, path: str | None = None) -> Iterator[Running]:
    log = app.parent / "dev.log"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)} | ({} if path is None else {"PATH": path})
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [sys.executable, "-c", COMMAND, "--http-port", "0", "--json", *arguments],
            cwd=app,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        try:
            yield Running(process, log)
        finally:
            process.terminate()


def put(address: str, path: str, body: object) -> int:
    request = urllib.request.Request(f"{address}/api/{path}", json.dumps(body).encode(), method="PUT")  # noqa: S310
    with urllib.request.urlopen(request) as response:  # noqa: S310
        status: int = response.status
        return status


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


def test_the_queue_in_which_calls_to_a_service_wait_is_made(app: Path) -> None:
    source = app / "function_app.py"
    service = 'Api("payments", "https://api.example.com/v1", key_lifetime=timedelta(hours=24))'
    wired = source.read_text().replace("(to_orders, to_stocks)", f"(to_orders, to_stocks, {service})")
    source.write_text(
        wired.replace(
            "\nimport azure.functions as func\n",
            "\nfrom datetime import timedelta\n\nimport azure.functions as func\n\nfrom exactlyonce import Api\n",
        )
    )
    settings = json.loads((app / "local.settings.json").read_text())["Values"]
    with dev(app, "--no-reload") as running:
        running.ready()
        with QueueServiceClient.from_connection_string(settings["AzureWebJobsStorage"]) as client:
            made = {one.name for one in client.list_queues()}
        assert running.end() == 0
    assert {"orders", "stocks", "payments"} <= made


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
