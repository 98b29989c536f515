"""App settings and connections are found as the real host finds them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from function_host import SettingsError
from function_host.app_settings import AppSettings, effective_settings, load_local_settings
from function_host.azurite import ACCOUNT
from function_host.connections import Connection, StorageAccount, find_connection
from function_host.service_bus.connection import find_service_bus


def test_the_environment_wins_over_the_file() -> None:
    assert effective_settings({"A": "file", "B": "file"}, {"A": "environment"}) == {"A": "environment", "B": "file"}


def test_names_do_not_depend_on_case_or_separator() -> None:
    settings = AppSettings({"Storage__queueServiceUri": "https://somewhere"})

    assert settings.get("STORAGE:QueueServiceUri") == "https://somewhere"


def test_references_are_replaced_by_settings() -> None:
    assert AppSettings({"QUEUE": "orders", "Stage": "test"}).resolve("%queue%-%STAGE%") == "orders-test"


def test_a_reference_to_nothing_is_an_error_that_names_it() -> None:
    with pytest.raises(SettingsError, match="'QUEUE', which is not set"):
        AppSettings({"QUEUE": ""}).resolve("%QUEUE%")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "must hold an object"),
        ('{"IsEncrypted": true, "Values": {}}', "func settings decrypt"),
        ('{"Values": {"PORT": 1, "OK": "x"}}', "quotation marks: PORT"),
    ],
)
def test_a_bad_settings_file_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "local.settings.json"
    path.write_text(content)

    with pytest.raises(SettingsError, match=message):
        load_local_settings(path)


def test_a_missing_settings_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"copy local\.settings\.json\.example"):
        load_local_settings(tmp_path / "local.settings.json")


def test_values_are_read(tmp_path: Path) -> None:
    path = tmp_path / "local.settings.json"
    path.write_text('{"IsEncrypted": false, "Values": {"A": "1"}, "Host": {"LocalHttpPort": 7071}}')

    assert load_local_settings(path) == {"A": "1"}


QUEUE = {"Games__queueServiceUri": "https://a.queue.core.windows.net", "Games__clientId": "me"}
BUS = {"Games__fullyQualifiedNamespace": "a.servicebus.windows.net", "Games__clientId": "me"}


@pytest.mark.parametrize(
    ("find", "name", "settings", "expected"),
    [
        (find_connection, "", {"AzureWebJobsStorage": "x"}, Connection("AzureWebJobsStorage", "x")),
        (find_connection, None, {"AzureWebJobsStorage": "x"}, Connection("AzureWebJobsStorage", "x")),
        (find_connection, "Games", {"Games": "plain", "AzureWebJobsGames": "x"}, Connection("Games", "x")),
        (find_connection, "Games", {"Games": "plain"}, Connection("Games", "plain")),
        (find_connection, "Games", QUEUE, Connection("Games", None, "https://a.queue.core.windows.net", "me")),
        (
            find_connection,
            "Games",
            {"Games__accountName": "abc"},
            Connection("Games", None, "https://abc.queue.core.windows.net"),
        ),
        (find_service_bus, None, {"AzureWebJobsServiceBus": "x"}, Connection("ServiceBus", "x")),
        (find_service_bus, "Games", BUS, Connection("Games", None, "a.servicebus.windows.net", "me")),
    ],
    ids=[
        "without a name that of the host",
        "nor with None",
        "with the prefix first",
        "as written",
        "by identity",
        "an account's name is enough",
        "without a name that of Service Bus",
        "a namespace by identity",
    ],
)
def test_a_connection_is_found(
    find: Callable[[AppSettings, str | None], Connection],
    name: str | None,
    settings: dict[str, str],
    expected: Connection,
) -> None:
    assert find(AppSettings(settings), name) == expected


@pytest.mark.parametrize(
    ("find", "told"),
    [
        (find_connection, r"set Games to a connection string .* or Games__queueServiceUri"),
        (find_service_bus, r"'Games' is not set: set Games to .* or Games__fullyQualifiedNamespace"),
    ],
)
def test_a_missing_connection_says_what_to_set(
    find: Callable[[AppSettings, str | None], Connection], told: str
) -> None:
    with pytest.raises(SettingsError, match=told):
        find(AppSettings({}), "Games")


def test_a_connection_does_not_show_its_key() -> None:
    assert "secret" not in repr(Connection("Games", connection_string="AccountKey=secret"))


async def test_development_storage_is_azurite_on_its_usual_port() -> None:
    async with StorageAccount(Connection("Games", connection_string="UseDevelopmentStorage=true")) as account:
        assert account.service.url.rstrip("/") == f"http://127.0.0.1:10001/{ACCOUNT}"


async def test_a_real_account_by_uri_is_opened_with_an_identity() -> None:
    async with StorageAccount(Connection("Games", address="https://a.queue.core.windows.net")) as account:
        assert account.service.credential is not None
        assert account.service.account_name == "a"


def test_a_malformed_connection_string_is_named_but_not_shown() -> None:
    with pytest.raises(SettingsError, match="'Games' has a value that is no connection") as caught:
        StorageAccount(Connection("Games", connection_string="secret"))

    assert "secret" not in str(caught.value)
