"""The command line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from azure.servicebus import ServiceBusClient
from azure.servicebus.exceptions import ServiceBusConnectionError, ServiceBusServerBusyError

from local_service_bus.testing import require_endpoint
from local_service_bus_tests.sdk import message

PACKAGE = Path(__file__).resolve().parents[1]
CONFIG = {"UserConfig": {"Namespaces": [{"Name": "local", "Queues": [{"Name": "orders"}]}]}}


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    require_endpoint()
    file = tmp_path / "Config.json"
    file.write_text(json.dumps(CONFIG))
    return [sys.executable, "-m", "local_service_bus", "--config", str(file), "--port", "0"]


def test_it_prints_its_address_serves_and_ends_by_a_signal(command: list[str]) -> None:
    with subprocess.Popen(command, cwd=PACKAGE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        client = ServiceBusClient.from_connection_string(told["connection_string"], retry_total=0)
        with client, client.get_queue_sender("orders") as sender, client.get_queue_receiver("orders") as receiver:
            sender.send_messages(message("a"))
            (found,) = receiver.receive_messages(1, max_wait_time=10)
            receiver.complete_message(found)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate()
    assert (process.returncode, str(found)) == (0, "a")
    assert "development and tests" in errors
    assert "orders" in errors


def test_a_wrong_file_ends_it_with_a_sentence(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "Config.json").write_text("{}")
    ended = subprocess.run(command, cwd=PACKAGE, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "UserConfig: Field required" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_it_can_be_administered_from_outside(command: list[str]) -> None:
    with subprocess.Popen([*command, "--admin", "0"], cwd=PACKAGE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        ask = Asking(told["admin"])
        rule = ask("POST", "faults", {"operation": "send", "action": "server_busy"})["id"]
        began = ask("GET", "clock")["now"]
        assert ask("POST", "clock", {"advance": 3600})["now"] >= began + 3600
        client = ServiceBusClient.from_connection_string(told["connection_string"], retry_total=0)
        with client, client.get_queue_sender("orders") as sender:
            with pytest.raises(ServiceBusServerBusyError):
                sender.send_messages(message("a"))
            assert ask("GET", f"faults/{rule}") == {"hits": 1}
            ask("DELETE", "links?entity=orders")
            with pytest.raises(ServiceBusConnectionError):
                sender.send_messages(message("b"))
            sender.send_messages(message("c"))
            ask("DELETE", "connections")
        assert ask("GET", "counts?entity=orders")["active"] == 1
        accepted = ask("GET", "history?after=0")["accepted"]
        assert [(item["operation"], item["message_id"], item["outcome"]) for item in accepted] == [
            ("send", "c", "active")
        ]
        ask("DELETE", "faults")
        for verb, path, body in (
            ("POST", "faults", {"operation": "read"}),
            ("POST", "faults", ["send"]),
            ("GET", "counts?entity=absent", None),
            ("GET", "counts", None),
            ("GET", "history?after=one", None),
        ):
            with pytest.raises(HTTPError, match="400") as refused:
                ask(verb, path, body)
            assert json.load(refused.value)["error"]
            refused.value.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0


class Asking:
    """Asks the administration at an address."""

    def __init__(self, address: str) -> None:
        self._address = address

    def __call__(self, verb: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        asked = Request(f"{self._address}/{path}", data, method=verb)  # noqa: S310  # The endpoint told the address.
        with urlopen(asked) as reply:  # noqa: S310
            return json.load(reply)
