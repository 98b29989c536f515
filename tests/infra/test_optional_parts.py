"""Service Bus and Spark are off unless asked for, and take identities only where they are on. So does monitoring, always."""

from __future__ import annotations

import json
import re
from types import ModuleType
from typing import Any

import pytest

from exactlyonce.hosting import ServiceBusConnection
from exactlyonce.hosting.config.settings import load_all
from tests.infra.bicep import INFRA, deployment, one
from tests.infra.conftest import ADDRESSES, settings_of
from tests.infra.test_storage import account


def test_nothing_that_costs_at_rest_is_on_by_default() -> None:
    assert {module.reference.partition(":")[0] for module in deployment()} == {
        "managed-identity/user-assigned-identity",
        "operational-insights/workspace",
        "insights/component",
        "storage/storage-account",
        "document-db/database-account",
        "web/serverfarm",
        "web/site",
    }
    assert one(deployment(), "web/serverfarm")["skuName"] == "FC1"


def test_service_bus_has_the_apps_queues_and_remembers_ids_for_as_long_as_a_send_is_repeated() -> None:
    params = one(deployment(deployServiceBus=True, deliveryLimitDays=5), "service-bus/namespace")
    assert params["disableLocalAuth"] is True
    storage = [queue["name"] for queue in account()["queueServices"]["queues"]]
    assert [queue["name"] for queue in params["queues"]] == [name for name in storage if not name.endswith("-poison")]
    for queue in params["queues"]:
        assert queue["requiresDuplicateDetection"] is True
        assert (queue["defaultMessageTimeToLive"], queue["deadLetteringOnMessageExpiration"]) == ("P5D", True)
        assert queue["duplicateDetectionHistoryTimeWindow"] == "PT10M"


@pytest.mark.parametrize(("by_length", "role"), [(False, "Receiver"), (True, "Owner")])
def test_the_host_may_manage_queues_of_service_bus_only_where_it_scales_by_their_length(
    by_length: bool, role: str
) -> None:
    modules = deployment(deployServiceBus=True, serviceBusScalesByLength=by_length)
    roles = {
        queue["name"]: [item["roleDefinitionIdOrName"].rpartition(" ")[2] for item in queue["roleAssignments"]]
        for queue in one(modules, "service-bus/namespace")["queues"]
    }
    assert roles == {"shooting-range": [role, "Sender"], "leader-board": [role, "Sender"], "audience": ["Sender"]}


@pytest.mark.parametrize("bus", [False, True])
def test_instances_that_are_always_ready_are_those_of_requests_and_of_each_queue(app: ModuleType, bus: bool) -> None:
    def scaling(**given: object) -> dict[str, Any]:
        config: dict[str, Any] = one(deployment(deployServiceBus=bus, **given), "web/site")["functionAppConfig"]
        return dict(config["scaleAndConcurrency"])

    assert "alwaysReady" not in scaling()
    ready = {group["name"]: group["instanceCount"] for group in scaling(alwaysReady=2)["alwaysReady"]}
    declared = {str(function.get_function_name()) for function in app.app.get_functions()}
    processing = {f"function:{name}" for name in declared if name.startswith("process_")}
    assert ready == dict.fromkeys({"http", *processing}, 2)


def test_the_app_is_alone_with_its_host_id_which_is_the_first_32_characters_of_its_name() -> None:
    name = one(deployment(), "web/site")["name"]
    known = re.sub(r"toLower\(uniqueString\(.*", "x" * 13, name)  # As long as that function makes it.
    assert len(known) <= 32, known


@pytest.mark.parametrize("sessions", [False, True])
def test_with_service_bus_the_app_runs_on_it(monkeypatch: pytest.MonkeyPatch, sessions: bool) -> None:
    given = settings_of(deployServiceBus=True, serviceBusSessions=sessions)
    more = set(given) - set(settings_of())
    assert {name for name in more if not name.startswith("ServiceBus__")} == {"EXACTLYONCE__transport"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("ServiceBus__fullyQualifiedNamespace", "name.servicebus.windows.net")
    settings, connections = load_all(["shooting-range", "leader-board", "audience"])
    assert settings.transport == "servicebus"
    assert connections.service_bus == ServiceBusConnection(
        "name.servicebus.windows.net", ADDRESSES["identity.outputs.clientId"]
    )
    queues = one(deployment(deployServiceBus=True, serviceBusSessions=sessions), "service-bus/namespace")["queues"]
    asked = {queue["name"] for queue in queues if queue.get("requiresSession")}
    assert asked == ({"shooting-range", "leader-board"} if sessions else set())


def test_the_spark_pool_is_the_version_that_jobs_are_tested_on_and_pauses_by_itself() -> None:
    modules = [module for module in deployment(deploySpark=True) if module.reference.startswith("synapse/")]
    (pool,) = modules[0].params["bigDataPools"]
    assert (pool["sparkVersion"], pool["nodeSize"]) == ("3.5", "Small")
    assert pool["autoScale"]["minNodeCount"] == 3
    assert 5 <= pool["autoPauseDelayInMinutes"] <= 15
    assert modules[0].params["azureADOnlyAuthentication"] is True


def test_names_in_job_definitions_exist() -> None:
    modules = deployment(deploySpark=True)
    (workspace,) = [module.params for module in modules if module.reference.startswith("synapse/")]
    (lake,) = [module.params for module in modules if module.params["name"].startswith("dls")]
    jobs = [
        json.loads(path.read_text())["properties"] for path in (INFRA / "synapse" / "sparkJobDefinition").glob("*.json")
    ]
    assert {job["targetBigDataPool"]["referenceName"] for job in jobs} == {
        pool["name"] for pool in workspace["bigDataPools"]
    }
    named = re.findall(r"abfss://([a-z0-9-]+)@", json.dumps(jobs))
    assert set(named) <= {container["name"] for container in lake["blobServices"]["containers"]}
    assert workspace["defaultDataLakeStorageFilesystem"] in named
    (pool,) = workspace["bigDataPools"]
    assert "azure-cosmos==" in pool["libraryRequirements"]["content"]


def test_telemetry_is_taken_from_the_apps_identity_only() -> None:
    insights = one(deployment(), "insights/component")
    assert insights["disableLocalAuth"] is True
    assert [role["principalId"] for role in insights["roleAssignments"]] == ["identity.outputs.principalId"]
    assert one(deployment(), "operational-insights/workspace")["features"] == {"disableLocalAuth": True}


def test_nobody_publishes_with_a_password() -> None:
    site = one(deployment(), "web/site")
    assert {policy["name"]: policy["allow"] for policy in site["basicPublishingCredentialsPolicies"]} == {
        "scm": False,
        "ftp": False,
    }
    assert site["httpsOnly"] is True
