"""`exactlyonce dev` on a new app: real processes, from the first line of its log to the last."""

from __future__ import annotations

import json
import os
import select
import signal
from pathlib import Path

import pytest
from azure.storage.queue import QueueServiceClient

from exactlyonce_dev_tests.apps import bus_at, dev, free_port, get, put, until

pytestmark = pytest.mark.acceptance


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
            made = {queue.name for queue in client.list_queues()}
        assert running.end() == 0
    assert {"orders", "stocks", "payments"} <= made


def test_without_node_one_sentence_says_so(app: Path) -> None:
    with dev(app, path="/nowhere") as running:
        assert running.process.wait() == 2
    assert "Azurite needs Node.js: install version 20 or newer" in running.log
    assert "Traceback" not in running.log


@pytest.mark.skipif(
    not hasattr(os, "pidfd_open"), reason="Only Linux tells of the end of processes that are not its own."
)
def test_all_parts_end_with_a_supervisor_that_is_killed(app: Path) -> None:
    with dev(app) as running:
        running.ready()
        tasks = Path(f"/proc/{running.process.pid}/task").glob("*/children")
        parts = [os.pidfd_open(int(pid)) for task in tasks for pid in task.read_text().split()]
        assert len(parts) == 3  # The local Cosmos DB, Azurite, and the app.
        running.process.kill()
        for part in parts:
            assert select.select([part], [], [], 30)[0], running.log
            os.close(part)


def test_a_signal_that_arrives_while_the_app_is_imported_ends_everything(app: Path) -> None:
    source = app / "function_app.py"
    source.write_text("import threading\n\nprint('importing')\nthreading.Event().wait()\n")
    settings = json.loads((app / "local.settings.json").read_text())
    settings["Values"]["ServiceBus"] = bus_at(free_port())
    (app / "local.settings.json").write_text(json.dumps(settings))
    with dev(app) as running:
        until(lambda: "importing" in running.log)
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait() == 0
    assert "Traceback" not in running.log


def test_wrong_settings_are_told_without_a_trace_and_end_the_command(app: Path) -> None:
    settings = json.loads((app / "local.settings.json").read_text())
    settings["Values"] |= {"COSMOS__database": "", "EXACTLYONCE__retention": "soon"}
    (app / "local.settings.json").write_text(json.dumps(settings))
    with dev(app, "--no-reload") as running:
        assert running.process.wait() == 2
    assert "- EXACTLYONCE__retention is wrong" in running.log
    assert "Traceback" not in running.log
