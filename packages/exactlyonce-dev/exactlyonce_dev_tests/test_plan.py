"""The plan is read from the app's settings; whatever cannot run on this machine is refused in a sentence."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from exactlyonce import ConfigurationError
from exactlyonce_dev import plan as plan_module
from exactlyonce_dev.plan import Plan
from exactlyonce_dev_tests.apps import bus_at

BUS = bus_at(5673)
SETTINGS = {"COSMOS__accountEndpoint": "http://127.0.0.1:8081/", "AzureWebJobsStorage": "UseDevelopmentStorage=true"}


def app_of(folder: Path, **settings: str) -> Path:
    (folder / "function_app.py").touch()
    (folder / "local.settings.json").write_text(json.dumps({"Values": SETTINGS | settings}))
    return folder


def test_the_usual_settings_name_the_usual_ports(tmp_path: Path) -> None:
    plan = Plan.of(app_of(tmp_path), 7071, {"HOME": "here"})
    assert (plan.cosmos, plan.queues, plan.blobs, plan.bus, plan.http) == (8081, 10001, None, None, 7071)
    assert plan.settings == SETTINGS | {"HOME": "here", "EXACTLYONCE__exceptionText": "on"}


def test_other_ports_blobs_and_service_bus_are_those_of_the_settings(tmp_path: Path) -> None:
    storage = "QueueEndpoint=http://127.0.0.1:1/x;BlobEndpoint=http://localhost:2/x;"
    app = app_of(tmp_path, AzureWebJobsStorage=storage, EXACTLYONCE__blobContainer="blobs", ServiceBus=BUS)
    plan = Plan.of(app, 0, {"COSMOS__accountEndpoint": "http://localhost:3"})
    assert (plan.cosmos, plan.queues, plan.blobs, plan.bus) == (3, 1, 2, 5673)
    plan = Plan.of(app_of(tmp_path, ServiceBus=BUS.replace(":5673", "")), 0, {})
    assert plan.bus == 5672


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("COSMOS__accountEndpoint", "https://shop.documents.azure.com:443/"),
        ("COSMOS__accountEndpoint", "http://127.0.0.1/"),
        ("COSMOS__accountEndpoint", ""),
        ("COSMOS__accountEndpoint", "http://localhost:abc/"),
        ("COSMOS__accountEndpoint", "http://localhost:99999/"),
        ("AzureWebJobsStorage", "DefaultEndpointsProtocol=https;AccountName=shop;AccountKey=secret"),
        ("AzureWebJobsStorage", ""),
        ("ServiceBus", "Endpoint=sb://shop.servicebus.windows.net/;SharedAccessKey=secret"),
        ("ServiceBus", "Endpoint=sb://localhost;SharedAccessKey=secret"),
        ("ServiceBus", BUS.replace("SAS_KEY_VALUE", "secret")),
    ],
)
def test_a_setting_that_is_not_of_this_machine_is_refused_and_not_quoted(name: str, value: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=rf"'exactlyonce dev' runs an app on .*Set {name} in local") as refused:
        Plan.of(app_of(tmp_path, **{name: value}), 0, {})
    assert "secret" not in str(refused.value)


def test_a_service_bus_that_an_identity_signs_in_to_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r"a local Service Bus only.*remove settings that begin with ServiceBus__"
    ):
        Plan.of(app_of(tmp_path), 0, {"ServiceBus__fullyQualifiedNamespace": "shop.servicebus.windows.net"})


@pytest.mark.parametrize("missing", ["local_service_bus", "proton"])
def test_a_service_bus_that_is_not_installed_is_told_in_a_sentence(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_module, "find_spec", lambda name: None if name == missing else name)
    Plan.of(app_of(tmp_path), 0, {}).require_servers()
    with pytest.raises(ConfigurationError, match=r"ServiceBus of local.*Install the wheel of local-service-bus"):
        Plan.of(app_of(tmp_path, ServiceBus=BUS), 0, {}).require_servers()


def test_a_folder_without_an_app_or_settings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="'exactlyonce new shop' writes one"):
        Plan.of(tmp_path, 0, {})
    (tmp_path / "function_app.py").touch()
    with pytest.raises(ConfigurationError, match=r"Copy local\.settings\.json\.example to local\.settings\.json"):
        Plan.of(tmp_path, 0, {})


def test_a_port_that_is_taken_is_named_with_the_place_of_its_setting(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        plan = Plan.of(app_of(tmp_path, COSMOS__accountEndpoint=f"http://127.0.0.1:{port}/"), 0, {})
        with pytest.raises(ConfigurationError, match=rf"Port {port} is taken, .*COSMOS__accountEndpoint of local"):
            plan.require_free_ports()
        with pytest.raises(ConfigurationError, match="another port in --http-port"):
            Plan(tmp_path, {}, 0, 0, None, None, port).require_free_ports()
    Plan(tmp_path, {}, port, 0, None, None, 0).require_free_ports()
