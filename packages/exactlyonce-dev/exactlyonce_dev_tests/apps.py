"""An app of the template under `exactlyonce dev`, as real processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import SystemRandom
from typing import Final

import pytest

from exactlyonce_dev.new import TEMPLATE
from function_host.azurite import ACCOUNT_KEY

COMMAND: Final = "import sys; from exactlyonce_dev.dev import main; sys.exit(main())"
REPOSITORY: Final = Path(__file__).resolve().parents[3]
_chance: Final = SystemRandom()


def free_port() -> int:
    """A port that is free, and that no process is given which asks for any."""
    while True:
        port = _chance.randrange(15_000, 32_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def bus_at(port: int) -> str:
    """The connection to a local Service Bus."""
    return (
        f"Endpoint=sb://localhost:{port};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;"
        "UseDevelopmentEmulator=true;"
    )


def new_app(tmp_path: Path) -> Path:
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


def club_app(tmp_path: Path, payments: str) -> Path:
    """The club as an app, whose members are reminded after a second.

    Args:
        tmp_path: for its folder.
        payments: address of the service that it calls.
    """
    folder, here = new_app(tmp_path), Path(__file__).parent
    (folder / "orders.py").unlink()
    business = (here / "club.py").read_text().replace("https://payments.example/v1", payments)
    (folder / "club.py").write_text(business.replace("timedelta(hours=1)", "timedelta(seconds=1)"))
    wiring = (here / "club_functions.py").read_text()
    (folder / "function_app.py").write_text(wiring.replace("exactlyonce_dev_tests.club", "club"))
    host = json.loads((folder / "host.json").read_text())
    host["extensions"]["queues"] |= {"maxDequeueCount": 2, "visibilityTimeout": "00:00:00"}
    (folder / "host.json").write_text(json.dumps(host))
    return folder


def configure(app: Path, **settings: str) -> dict[str, str]:
    """Change settings of an app, and return all of them."""
    path = app / "local.settings.json"
    file = json.loads(path.read_text())
    values: dict[str, str] = file["Values"]
    values |= settings
    path.write_text(json.dumps(file))
    return values


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
        return self.process.wait()


@contextmanager
def dev(app: Path, *arguments: str, path: str | None = None) -> Iterator[Running]:
    log = app.parent / "dev.log"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)} | ({} if path is None else {"PATH": path})
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [sys.executable, "-c", COMMAND, "--http-port", "0", "--console-port", "0", "--json", *arguments],
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
    """The body of a reply, or its status if that is an error."""
    try:
        with urllib.request.urlopen(f"{address}/api/{path}") as response:  # noqa: S310
            return json.load(response)
    except urllib.error.HTTPError as error:
        return error.code


def until(holds: Callable[[], bool]) -> None:
    while not holds():  # The time limit of the test ends it.
        time.sleep(0.1)
