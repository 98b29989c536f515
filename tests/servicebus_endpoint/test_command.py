"""The command line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from azure.servicebus import ServiceBusClient

from tests.packaging.sources import ROOT
from tests.servicebus import require_endpoint
from tests.servicebus_endpoint.sdk import message

CONFIG = {"UserConfig": {"Namespaces": [{"Name": "local", "Queues": [{"Name": "orders"}]}]}}


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    require_endpoint()
    file = tmp_path / "Config.json"
    file.write_text(json.dumps(CONFIG))
    return [sys.executable, "-m", "devtools.servicebus_endpoint", "--config", str(file), "--port", "0"]


def test_it_tells_its_address_serves_and_ends_by_a_signal(command: list[str]) -> None:
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        client = ServiceBusClient.from_connection_string(told["connection_string"], retry_total=0)
        with client, client.get_queue_sender("orders") as sender, client.get_queue_receiver("orders") as receiver:
            sender.send_messages(message("a"))
            (found,) = receiver.receive_messages(1, max_wait_time=10)
            receiver.complete_message(found)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=20)
    assert (process.returncode, str(found)) == (0, "a")
    assert "development and tests" in errors
    assert "orders" in errors


def test_a_wrong_file_ends_it_with_a_sentence(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "Config.json").write_text("{}")
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == 1
    assert "UserConfig: Field required" in ended.stderr
    assert "Traceback" not in ended.stderr
