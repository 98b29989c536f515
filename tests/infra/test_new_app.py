"""The infrastructure of a new app: the parts of the sample, with containers, queues and settings by parameter."""

from __future__ import annotations

import json
from typing import Any

import yaml

from exactlyonce.hosting import Settings
from tests.infra.bicep import INFRA, NEW_APP, File, Module, deployment, one
from tests.infra.conftest import ADDRESSES
from tests.infra.test_settings import HOST, NAMES


def filled() -> dict[str, Any]:
    """What azd gives to the parameters."""
    parameters = json.loads((NEW_APP / "main.parameters.json").read_text())["parameters"]
    return {name: parameter["value"] for name, parameter in parameters.items()}


def modules(**more: Any) -> list[Module]:
    azd = {"cosmosCapacity": "serverless", "publicNetworkAccess": "Enabled", "appSubnetId": ""}  # By default.
    return list(File(NEW_APP / "main.bicep", {**filled(), **azd, **more}).modules())


def test_the_parts_are_those_of_the_sample() -> None:
    for path in (*(NEW_APP / "app").iterdir(), NEW_APP / "bicepconfig.json"):
        assert path.resolve() == INFRA / path.relative_to(NEW_APP)
    assert {module.reference for module in modules()} == {module.reference for module in deployment()}


def test_azd_fills_in_every_parameter_that_has_no_default() -> None:
    main = File(NEW_APP / "main.bicep")
    assert main.required <= set(filled()) <= set(main.declared("parameter"))


def test_the_service_is_the_one_that_the_function_app_is_tagged_as() -> None:
    project = yaml.safe_load((NEW_APP.parent / "azure.yaml").read_text())
    assert project["services"] == {"api": {"project": ".", "language": "python", "host": "function"}}
    assert one(modules(), "web/site")["tags"]["azd-service-name"] == "api"
    assert project["infra"] == {"provider": "bicep", "path": "infra", "module": "main"}


def test_containers_and_queues_are_those_of_the_parameters() -> None:
    places = [{"name": "places", "paths": ["/tenant", "/place"]}, {"name": "orders", "paths": ["/order"]}]
    found = modules(containers=places, triggeredQueues=["orders"], outputQueues=["mail"], databaseName="shop")
    (database,) = one(found, "document-db/database-account")["sqlDatabases"]
    made = {container["name"]: container for container in database["containers"]}
    assert database["name"] == "shop"
    assert {name: (container.get("kind"), container["paths"]) for name, container in made.items()} == {
        "places": ("MultiHash", ["/tenant", "/place"]),
        "orders": ("Hash", ["/order"]),
        "exactlyonce": (None, ["/pk"]),
    }
    indexed = [path["path"] for path in made["places"]["indexingPolicy"]["includedPaths"]]
    assert indexed[:3] == ["/tenant/?", "/place/?", "/_ledger/outbox/[]/tx/?"]
    queues = one(found, "storage/storage-account")["queueServices"]["queues"]
    assert [queue["name"] for queue in queues] == ["orders", "orders-poison", "mail"]


def test_the_app_gets_every_setting_that_it_needs_and_those_of_its_own() -> None:
    (config,) = one(modules(settings={"BANK": "b"}), "web/site")["configs"]
    given = {name: ADDRESSES.get(value, value) for name, value in config["properties"].items()}
    assert set(given) - set(NAMES) == HOST | {"BANK"}
    assert {name for name, field in NAMES.items() if field.is_required()} <= set(given)
    assert Settings.model_validate(given).database == "APP-NAME"
