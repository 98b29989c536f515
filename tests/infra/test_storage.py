"""Queues and blobs: what the app names exists, with the least that the identity needs on each, and lives long enough."""

from __future__ import annotations

from datetime import timedelta
from types import ModuleType
from typing import Any, Final

import pytest

from exactlyonce.hosting import Settings
from exactlyonce.records.blobs import CLAIM_CHECKS
from exactlyonce.values.lifetimes import RETENTION
from tests.infra.bicep import deployment, one
from tests.infra.conftest import settings_of

POISON: Final = timedelta(days=7)
"""For how long the host's copy in a poison queue lives; no setting changes it."""


def account(**parameters: Any) -> dict[str, Any]:
    return one(deployment(**parameters), "storage/storage-account")


def roles(resources: list[dict[str, Any]]) -> dict[str, set[str]]:
    """Roles of the app's identity on each queue or container."""
    for resource in resources:
        assert {role["principalId"] for role in resource["roleAssignments"]} == {"identity.outputs.principalId"}
    return {item["name"]: {role["roleDefinitionIdOrName"] for role in item["roleAssignments"]} for item in resources}


def triggers(app: ModuleType) -> set[str]:
    """Queues that functions are triggered by."""
    found = (function.get_trigger() for function in app.app.get_functions())
    return {trigger.get_dict_repr()["queueName"] for trigger in found if trigger.type == "queueTrigger"}


def test_every_queue_that_the_app_names_exists_with_its_poison_queue_and_no_other(app: ModuleType) -> None:
    read = triggers(app)
    sent = {destination.name for destination in app.once._destinations}
    # The host makes no poison queue for a queue that is one.
    poison = {f"{queue}-poison" for queue in read if not queue.endswith("-poison")}
    assert "shooting-range-poison" in poison
    assert set(roles(account()["queueServices"]["queues"])) == read | sent | poison


def test_the_app_may_process_what_it_reads_and_only_send_to_the_others(app: ModuleType) -> None:
    read = triggers(app)
    for name, given in roles(account()["queueServices"]["queues"]).items():
        assert given == {"Storage Queue Data Contributor" if name in read else "Storage Queue Data Message Sender"}, (
            name
        )


def test_containers_are_those_of_the_app_the_package_and_the_host() -> None:
    containers = roles(account()["blobServices"]["containers"])
    settings = settings_of()
    package = one(deployment(), "web/site")["functionAppConfig"]["deployment"]["storage"]["value"]
    assert package == "storage.outputs.blobServiceUri" + "app-package"
    assert set(containers) == {
        settings["EXACTLYONCE__blobContainer"],
        "app-package",
        "azure-webjobs-hosts",
        "azure-webjobs-secrets",
    }
    assert set().union(*containers.values()) == {"Storage Blob Data Contributor"}


def test_the_whole_account_may_be_listed_for_the_hosts_health_check_and_nothing_else() -> None:
    assert roles([account()]) == {account()["name"]: {"Storage Blob Data Reader"}}


def age_at_deletion(**parameters: Any) -> timedelta:
    """How old the data of a message is when the rule deletes it."""
    (rule,) = account(**parameters)["managementPolicyRules"]
    assert rule["enabled"] is True
    ((action, condition),) = rule["definition"]["actions"]["baseBlob"].items()
    assert action == "delete"
    return timedelta(days=condition["daysAfterCreationGreaterThan"])


@pytest.mark.parametrize(
    ("given", "limit", "retention"),
    [
        ({}, Settings.model_fields["delivery_limit"].default, RETENTION),
        ({"deliveryLimitDays": 2, "retentionDays": 20}, timedelta(days=2), timedelta(days=20)),
    ],
    ids=["the library's defaults", "others"],
)
def test_the_app_and_the_rule_that_deletes_data_of_messages_go_by_the_same_days(
    given: dict[str, int], limit: timedelta, retention: timedelta
) -> None:
    settings = Settings.model_validate(settings_of(**given))
    assert (settings.delivery_limit, settings.retention) == (limit, retention)
    assert age_at_deletion(**given) == limit + retention


def test_a_message_that_is_sent_again_at_the_last_moment_still_has_its_data() -> None:
    delivery_limit = Settings.model_fields["delivery_limit"].default
    # In its queue; given up; parked; in its queue again.
    waits = (delivery_limit, POISON, delivery_limit, delivery_limit)
    assert age_at_deletion() > sum(waits, timedelta())


def test_only_data_of_messages_is_deleted_by_age() -> None:
    (rule,) = account()["managementPolicyRules"]
    container = settings_of()["EXACTLYONCE__blobContainer"]
    assert rule["definition"]["filters"] == {
        "blobTypes": ["blockBlob"],
        "prefixMatch": [f"{container}/{CLAIM_CHECKS}/"],
    }


def test_storage_takes_no_keys_and_shows_nothing_in_public() -> None:
    for module in deployment(deploySpark=True):
        if module.reference.startswith("storage/"):
            assert module.params["allowSharedKeyAccess"] is False
            assert module.params["allowBlobPublicAccess"] is False


@pytest.mark.parametrize(("access", "action"), [("Enabled", "Allow"), ("Disabled", "Deny")])
def test_the_public_network_can_be_shut_out(access: str, action: str) -> None:
    modules = deployment(publicNetworkAccess=access, deployServiceBus=True)
    storage = one(modules, "storage/storage-account")
    assert (storage["publicNetworkAccess"], storage["networkAcls"]["defaultAction"]) == (access, action)
    assert one(modules, "document-db/database-account")["networkRestrictions"]["publicNetworkAccess"] == access
    assert one(modules, "service-bus/namespace")["publicNetworkAccess"] == access
