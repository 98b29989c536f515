"""`exactlyonce dev` makes what an app with large messages, or on Service Bus, declares."""

from __future__ import annotations

from pathlib import Path

import pytest
from azure.storage.blob import BlobServiceClient

from exactlyonce_dev_tests.apps import bus_at, configure, dev, free_port, get, put, until
from local_service_bus.testing import require_endpoint

pytestmark = pytest.mark.acceptance


def test_the_data_of_a_large_message_travels_by_a_blob(app: Path) -> None:
    storage = f"{configure(app)['AzureWebJobsStorage']}BlobEndpoint=http://127.0.0.1:{free_port()}/devstoreaccount1;"
    configure(app, AzureWebJobsStorage=storage, EXACTLYONCE__blobContainer="large")
    source = app / "orders.py"
    source.write_text(source.read_text().replace("    quantity: int\n", "    quantity: int\n    note: str = ''\n", 1))
    with dev(app, "--no-reload") as running:
        address = running.ready()
        line = {"item": "tea", "quantity": 2, "note": "n" * 60_000}
        assert put(address, "orders/o-1/lines/l-1", line) == 202
        until(lambda: get(address, "stocks/tea") == {"reserved": 2})
        with BlobServiceClient.from_connection_string(storage) as service:
            (blob,) = service.get_container_client("large").list_blobs(name_starts_with="_messages/")
        assert running.end() == 0
    assert blob.size > 60_000


def test_an_app_on_service_bus_finds_its_queues(app: Path) -> None:
    require_endpoint()
    configure(app, ServiceBus=bus_at(free_port()), EXACTLYONCE__transport="servicebus")
    with dev(app, "--no-reload") as running:
        address = running.ready()
        line = {"item": "tea", "quantity": 2}
        assert put(address, "orders/o-1/lines/l-1", line) == 202
        until(lambda: get(address, "stocks/tea") == {"reserved": 2})
        assert put(address, "orders/o-1/lines/l-1", line) == 202
        until(lambda: "message http/l-1 for order/o-1 changed nothing: it is a duplicate" in running.log)
        assert running.end() == 0
    assert "Traceback" not in running.log
