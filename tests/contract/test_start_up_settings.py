"""What stops a start: one message that names every setting that is missing or wrong, each with what to set."""

from __future__ import annotations

import pytest

from exactlyonce import ConfigurationError
from tests.contract.starting import WRONG_KEY, start

ENDPOINT, DESTINATIONS, TRANSPORT = "COSMOS__accountEndpoint", "EXACTLYONCE__destinations", "EXACTLYONCE__transport"
WRONG_SETTINGS = {
    "endpoint missing": (ENDPOINT, None, "is missing: set it to the account's address, such as https://"),
    "endpoint empty": (ENDPOINT, "", "set it to the account's address"),
    "endpoint without a scheme": (ENDPOINT, "name.documents.azure.com", "set it to the account's address"),
    "endpoint without a host": (ENDPOINT, "https://", "set it to the account's address"),
    "endpoint that is a connection string": (ENDPOINT, f"AccountKey={WRONG_KEY}", "the account's address"),
    "database missing": ("COSMOS__database", None, "is missing: set it to the name of the account's database"),
    "database that cannot be": ("COSMOS__database", "a/b", "set it to the name of the account's database"),
    "key cut off": ("COSMOS__accountKey", WRONG_KEY[:-1], "it is not base64): set it to the account's key"),
    "library container that cannot be": (
        "EXACTLYONCE__container",
        "a#b",
        "set it to the name of the library's container",
    ),
    "connection empty": ("EXACTLYONCE__connection", "", "set it to the name of a storage connection"),
    "connection of another name": ("EXACTLYONCE__connection", "Orders", "Set Orders__queueServiceUri"),
    "storage missing": ("AzureWebJobsStorage", None, "Set AzureWebJobsStorage__queueServiceUri to use an identity"),
    "storage malformed": ("AzureWebJobsStorage", f"Key={WRONG_KEY}", "copy it from the account's access keys"),
    "storage that is no connection string": ("AzureWebJobsStorage", "https://a.net", "no connection string"),
    "destinations that are no JSON": (DESTINATIONS, "a=b", "it is not JSON): set it to a JSON"),
    "destinations that are a list": (DESTINATIONS, "[]", "set it to a JSON object"),
    "destinations of another application": (DESTINATIONS, '{"x": "y"}', "'x', which is no destination"),
    "queue that cannot be": (DESTINATIONS, '{"receipts": "A_B"}', "'A_B' cannot be the name of a queue"),
    "blob container that cannot be": ("EXACTLYONCE__blobContainer", "A_B", "set it to the name of a blob container"),
    "delivery limit malformed": ("EXACTLYONCE__deliveryLimit", "a week", "set it to a duration such as P7D"),
    "delivery limit of months": ("EXACTLYONCE__deliveryLimit", "P1M", "set it to a duration such as P7D"),
    "retention malformed": ("EXACTLYONCE__retention", "a month", "set it to a duration such as P30D"),
    "application without a name": ("EXACTLYONCE__application", "", "set it to the application's name"),
    "delivery limit of no time": ("EXACTLYONCE__deliveryLimit", "0", "set it to a duration such as P7D"),
    "delivery timeout of no time": ("EXACTLYONCE__deliveryTimeout", "0", "set it to a number of seconds from 1"),
    "transport that does not exist": (TRANSPORT, "bus", "set it to storage or servicebus"),
    "transport without a connection": (
        TRANSPORT,
        "servicebus",
        "Set ServiceBus__fullyQualifiedNamespace to use an identity",
    ),
    "Service Bus connection empty": ("EXACTLYONCE__serviceBusConnection", "", "the name of a Service Bus connection"),
    "message size below all tiers": ("EXACTLYONCE__maxMessageBytes", "1", "set it to a number of bytes from 65536"),
    "proved within malformed": ("EXACTLYONCE__provedWithin", "soon", "set it to a duration such as PT10M"),
    "expiry of no kind": ("EXACTLYONCE__expiry", "never", "set it to job or store, or remove it"),
    "sweep after of no time": ("EXACTLYONCE__sweepAfter", "-1", "set it to a number of seconds above 0"),
}


@pytest.mark.parametrize("kind", WRONG_SETTINGS)
def test_a_wrong_setting_stops_the_start_and_is_reported_with_what_to_set(
    environment: pytest.MonkeyPatch, kind: str
) -> None:
    name, value, words = WRONG_SETTINGS[kind]
    if value is None:
        environment.delenv(name)
    else:
        environment.setenv(name, value)
    with pytest.raises(ConfigurationError) as raised:
        start()
    assert words in str(raised.value)
    assert str(raised.value).count("\n- ") == 1
    assert WRONG_KEY[:-1] not in str(raised.value)
    assert raised.value.__cause__ is None


async def test_with_the_right_settings_it_starts(environment: pytest.MonkeyPatch) -> None:
    for name, value in (
        ("COSMOS__accountKey", WRONG_KEY),
        ("EXACTLYONCE__destinations", '{"receipts": "queue-1"}'),
        ("EXACTLYONCE__blobContainer", "blobs"),
        ("EXACTLYONCE__deliveryLimit", "P2D"),
    ):
        environment.setenv(name, value)
    await start().close()


@pytest.mark.parametrize("service", ["queue", "blob"])
def test_an_address_that_is_none_stops_the_start(environment: pytest.MonkeyPatch, service: str) -> None:
    environment.delenv("AzureWebJobsStorage")
    environment.setenv("AzureWebJobsStorage__queueServiceUri", "https://a.queue.core.windows.net")
    environment.setenv(f"AzureWebJobsStorage__{service}ServiceUri", "somewhere")
    with pytest.raises(ConfigurationError, match=rf"{service}ServiceUri is no address.*https://name\.{service}\."):
        start()


def test_every_wrong_setting_is_reported_in_one_message(environment: pytest.MonkeyPatch) -> None:
    environment.delenv("COSMOS__accountEndpoint")
    environment.delenv("AzureWebJobsStorage")
    environment.setenv("COSMOS__database", "a/b")
    environment.setenv("COSMOS__accountKey", "!")
    environment.setenv("EXACTLYONCE__destinations", '{"x": "y", "receipts": "A_B"}')
    environment.setenv("EXACTLYONCE__deliveryLimit", "a week")
    environment.setenv("EXACTLYONCE__provedWithin", "soon")
    with pytest.raises(ConfigurationError) as raised:
        start()
    assert str(raised.value).count("\n- ") == 8


def test_a_blob_container_of_an_unknown_account_is_reported_with_the_rest(
    environment: pytest.MonkeyPatch,
) -> None:
    environment.delenv("COSMOS__database")
    environment.delenv("AzureWebJobsStorage")
    environment.setenv("AzureWebJobsStorage__queueServiceUri", "https://a.queue.core.windows.net")
    environment.setenv("EXACTLYONCE__blobContainer", "blobs")
    with pytest.raises(ConfigurationError, match=r"(?s)COSMOS__database.*set AzureWebJobsStorage__blobServiceUri"):
        start()
