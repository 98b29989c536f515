"""Service Bus and Spark are off unless asked for, and take identities only where they are on. So does monitoring, always."""

from __future__ import annotations

import json
import re

import pytest

from exactlyonce.hosting import ServiceBusConnection
from exactlyonce.hosting.config.environment import load_all
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


@pytest.mark.parametrize("sessions", [False, True])
def test_with_service_bus_the_app_runs_on_it(monkeypatch: pytest.MonkeyPatch, sessions: bool) -> None:
    given = settings_of(deployServiceBus=True, serviceBusSessions=sessions)
    more = set(given) - set(settings_of())
    assert {name for name in more if not name.startswith("ServiceBus__")} == {"TRANSPORT", "SERVICEBUS_SESSIONS"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("ServiceBus__fullyQualifiedNamespace", "name.servicebus.windows.net")
    settings, connections = load_all(["shooting-range", "leader-board", "audience"], given["TRANSPORT"])
    assert settings.transport == "servicebus"
    assert connections.service_bus == ServiceBusConnection(
        "name.servicebus.windows.net", ADDRESSES["identity.outputs.clientId"]
    )
    queues = one(deployment(deployServiceBus=True, serviceBusSessions=sessions), "service-bus/namespace")["queues"]
    asked = {queue["name"] for queue in queues if queue.get("requiresSession")}
    assert asked == ({"shooting-range", "leader-board"} if sessions else set())
    assert given["SERVICEBUS_SESSIONS"] == ("on" if sessions else "off")


def test_the_spark_pool_is_the_version_that_jobs_are_tested_on_and_pauses_by_itself() -> None:
    modules = [module for module in deployment(deploySpark=True) if module.reference.startswith("synapse/")]
    (pool,) = modules[0].params["bigDataPools"]
    assert (pool["sparkVersion"], pool["nodeSize"]) == ("3.5", "Small")
    assert pool["autoScale"]["minNodeCount"] == 3
    assert 5 <= pool["autoPauseDelayInMinutes"] <= 15
    assert modules[0].params["azureADOnlyAuthentication"] is True


def test_what_job_definitions_name_exists() -> None:
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
