"""Application settings: the app starts with them, on identities only, and none is there that nobody reads."""

from __future__ import annotations

from types import ModuleType
from typing import Final

from exactlyonce.hosting import Settings, StorageConnection
from tests.infra.bicep import deployment, one
from tests.infra.conftest import ADDRESSES, settings_of

NAMES: Final = {str(field.validation_alias): field for field in Settings.model_fields.values()}
"""Settings of the library, by variable."""

HOST: Final = {
    "AzureWebJobsStorage__blobServiceUri",
    "AzureWebJobsStorage__queueServiceUri",
    "AzureWebJobsStorage__credential",
    "AzureWebJobsStorage__clientId",
    "APPLICATIONINSIGHTS_CONNECTION_STRING",
    "APPLICATIONINSIGHTS_AUTHENTICATION_STRING",
}
"""What the host reads, by Microsoft's pages on identity-based connections and on Application Insights."""


def test_every_setting_is_read_by_somebody_and_none_that_is_required_is_missing() -> None:
    given = set(settings_of())
    assert given - set(NAMES) == HOST
    assert {name for name, field in NAMES.items() if field.is_required()} <= given


def test_the_app_starts_with_these_settings(app: ModuleType) -> None:
    settings = Settings.load()
    assert settings.account_key is None
    assert settings.client_id == ADDRESSES["identity.outputs.clientId"]
    assert settings.blob_container == settings_of()["EXACTLYONCE__blobContainer"]
    assert app.once is not None


def test_queues_and_blobs_are_reached_as_the_identity() -> None:
    connection = StorageConnection.load("AzureWebJobsStorage", settings_of())
    assert connection.client_id == ADDRESSES["identity.outputs.clientId"]
    assert connection.account == ADDRESSES["storage.outputs.queueServiceUri"]
    assert connection.blobs == ADDRESSES["storage.outputs.blobServiceUri"]
    assert settings_of()["AzureWebJobsStorage__credential"] == "managedidentity"


def test_addresses_of_blobs_have_no_doubled_slash(app: ModuleType) -> None:
    assert app.once._parts.resources.blobs.address == "https://example.blob.core.windows.net/exactlyonce"


def test_the_package_runs_on_a_python_that_the_library_knows_and_the_service_offers() -> None:
    function = one(deployment(), "web/site")["functionAppConfig"]
    assert function["runtime"] == {"name": "python", "version": "3.11"}
    assert function["deployment"]["storage"]["authentication"]["type"] == "UserAssignedIdentity"


def test_the_app_runs_as_one_identity_and_has_no_other() -> None:
    assert one(deployment(), "web/site")["managedIdentities"] == {
        "userAssignedResourceIds": ["identity.outputs.resourceId"]
    }
