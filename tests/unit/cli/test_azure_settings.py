"""Settings of an app in Azure, read with an Azure CLI that answers as the real one does."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from exactlyonce import ConfigurationError
from exactlyonce.cli.commands import use_azure_settings
from tests.unit.operated import InMemory, Run, app, run

__all__ = ["app", "run"]

ID = "/subscriptions/s/resourceGroups/rg-shop/providers/Microsoft.Web/sites/func-shop"
SETTINGS = {
    "COSMOS__accountEndpoint": "https://shop.documents.azure.com:443/",
    "COSMOS__database": "shop",
    "COSMOS__clientId": "1111",
    "AzureWebJobsStorage__queueServiceUri": "https://shop.queue.core.windows.net",
    "AzureWebJobsStorage__credential": "managedidentity",
    "AzureWebJobsStorage__clientId": "1111",
    "APPLICATIONINSIGHTS_CONNECTION_STRING": "InstrumentationKey=1",
    "PYTHON_APPLICATIONINSIGHTS_ENABLE_TELEMETRY": "true",
    "STRIPE_KEY": "@Microsoft.KeyVault(SecretUri=https://shop.vault.azure.net/secrets/stripe)",
    "STRATEGY": "outbox",
}
USED = {
    "COSMOS__accountEndpoint": "https://shop.documents.azure.com:443/",
    "COSMOS__database": "shop",
    "AzureWebJobsStorage__queueServiceUri": "https://shop.queue.core.windows.net",
    "STRATEGY": "outbox",
}


class AzureCli:
    """`az` on the path: a script that prints what it is told to, and keeps its arguments."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        monkeypatch.setenv("PATH", str(folder))
        self.has([ID], SETTINGS)

    def has(self, ids: list[str], settings: dict[str, str]) -> None:
        """There are these apps, and the settings of the first."""
        listed = [{"name": name, "slotSetting": False, "value": value} for name, value in settings.items()]
        self._script(f"print(json.dumps({ids!r} if sys.argv[1] == 'resource' else {listed!r}))")

    def refuses(self, sentence: str) -> None:
        """Every command fails."""
        self._script(f"sys.exit('WARNING: a warning\\n' + {sentence!r})")

    @property
    def asked(self) -> list[list[str]]:
        """Arguments of all commands so far."""
        return [json.loads(line) for line in (self._folder / "asked").read_text().splitlines()]

    def _script(self, last: str) -> None:
        az = self._folder / "az"
        keep = f"open({str(self._folder / 'asked')!r}, 'a').write(json.dumps(sys.argv[1:]) + '\\n')"
        az.write_text(f"#!{sys.executable} -I\nimport json, sys\n{keep}\n{last}\n")
        az.chmod(0o755)


@pytest.fixture
def azure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AzureCli:
    return AzureCli(tmp_path, monkeypatch)


def test_settings_come_by_the_name_of_the_app_without_its_identity_and_its_telemetry(azure: AzureCli) -> None:
    environment = {"STRATEGY": "outbox", "HOME": "/home"}
    use_azure_settings("func-shop", environment)
    assert environment == {"HOME": "/home", **USED}
    resource = ["resource", "list", "--name", "func-shop", "--resource-type", "Microsoft.Web/sites"]
    assert azure.asked == [
        [*resource, "--query", "[].id", "--output", "json"],
        ["functionapp", "config", "appsettings", "list", "--ids", ID, "--output", "json"],
    ]


def test_an_environment_that_says_otherwise_is_refused_by_the_names_and_keeps_what_it_has(azure: AzureCli) -> None:
    environment = {"COSMOS__database": "other", "STRATEGY": "stream"}
    with pytest.raises(ConfigurationError, match="sets COSMOS__database, STRATEGY to other values") as refused:
        use_azure_settings("func-shop", environment)
    assert "shop.documents" not in str(refused.value)
    assert environment == {"COSMOS__database": "other", "STRATEGY": "stream"}


@pytest.mark.parametrize(("ids", "number"), [([], "no"), ([ID, ID.replace("rg-shop", "rg-2")], "2")])
def test_a_name_that_is_not_of_one_app_is_refused(azure: AzureCli, ids: list[str], number: str) -> None:
    azure.has(ids, SETTINGS)
    with pytest.raises(ConfigurationError, match=f"has {number} function apps of the name 'func-shop'"):
        use_azure_settings("func-shop", {})


def test_a_setting_of_the_library_that_is_a_reference_is_refused(azure: AzureCli) -> None:
    azure.has([ID], {**SETTINGS, "COSMOS__accountKey": "@Microsoft.KeyVault(SecretUri=x)"})
    with pytest.raises(ConfigurationError, match="COSMOS__accountKey of 'func-shop' is a reference"):
        use_azure_settings("func-shop", {})


def test_the_last_sentence_of_the_azure_cli_is_shown(azure: AzureCli) -> None:
    azure.refuses("ERROR: Please run 'az login' to setup account.")
    with pytest.raises(ConfigurationError, match=r"refused 'az resource list'\. It said: ERROR: Please run 'az login'"):
        use_azure_settings("func-shop", {})


def test_without_the_azure_cli_the_error_says_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigurationError, match="needs the Azure CLI: install it, and run 'az login'"):
        use_azure_settings("func-shop", {})


def test_operators_commands_use_the_settings_of_the_app_that_they_name(
    app: InMemory, azure: AzureCli, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    for name in USED:
        monkeypatch.setenv(name, "")  # So that it is gone again after the test.
        monkeypatch.delenv(name)
    assert run("--azure", "func-shop", "parked").code == 0
    azure.has([], {})
    refused = run("--azure", "func-shop", "parked")
    assert refused.code == 2
    assert "no function apps of the name 'func-shop'" in refused.err
