"""Connections to Service Bus are opened as the real host opens them."""

import pytest

from function_host import SettingsError
from function_host.connections import Connection
from function_host.service_bus.connection import Namespace

KEY = "SharedAccessKeyName=all;SharedAccessKey=c2VjcmV0"


@pytest.mark.parametrize("namespace", ["a.servicebus.windows.net", "https://a.servicebus.windows.net:443/"])
async def test_a_namespace_may_be_written_as_an_address(namespace: str) -> None:
    async with Namespace(Connection("Bus", address=namespace)) as opened:
        assert opened.client.fully_qualified_namespace == "a.servicebus.windows.net"


async def test_a_connection_string_opens_a_client_without_asking_anybody() -> None:
    text = f"Endpoint=sb://localhost:5/;{KEY};UseDevelopmentEmulator=true"

    async with Namespace(Connection("Bus", connection_string=text)) as opened:
        assert opened.client.fully_qualified_namespace.startswith("localhost")


@pytest.mark.parametrize("text", ["nonsense", f"Endpoint=;{KEY}", "Endpoint=sb://a/;SharedAccessKey=c2VjcmV0"])
def test_a_value_that_is_no_connection_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(SettingsError, match="'Bus' has a value that is no connection") as refused:
        Namespace(Connection("Bus", connection_string=text))
    assert "c2VjcmV0" not in str(refused.value)
