"""Requests that the SDK would never make, by proton's own client."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

import pytest

from local_service_bus_tests.sdk import queue

if TYPE_CHECKING:
    from local_service_bus.inprocess import RunningEndpoint

OK, ACCEPTED, NO_CONTENT, BAD, UNAUTHORIZED = 200, 202, 204, 400, 401


class Client:
    """A connection by proton."""

    def __init__(self, port: int) -> None:
        self._proton = import_module("proton")
        utils = import_module("proton.utils")
        self.connection = utils.BlockingConnection(f"amqp://127.0.0.1:{port}", timeout=1800, allowed_mechs="ANONYMOUS")

    def ask(self, node: str, operation: str, body: object) -> tuple[int, str]:
        """Make a request; returns status and description."""
        replies = self.connection.create_receiver(node)
        sender = self.connection.create_sender(node)
        sender.send(self._proton.Message(id="1", reply_to="me", properties={"operation": operation}, body=body))
        reply = replies.receive(timeout=1800)
        sender.close()
        replies.close()
        return reply.properties["statusCode"], reply.properties["statusDescription"]


@pytest.fixture
def client(endpoint: RunningEndpoint) -> Iterator[Client]:
    client = Client(endpoint.port)
    yield client
    client.connection.close()


@pytest.fixture(scope="module")
def authorized(endpoint: RunningEndpoint) -> Iterator[Client]:
    client = Client(endpoint.port)
    parts = dict(part.split("=", 1) for part in endpoint.connection_string.strip(";").split(";"))
    token = signature(parts["SharedAccessKeyName"], parts["SharedAccessKey"])
    assert client.ask("$cbs", "put-token", token)[0] == ACCEPTED
    yield client
    client.connection.close()


def signature(name: str, key: str) -> str:
    resource = quote_plus("sb://localhost/")
    digest = hmac.digest(key.encode(), f"{resource}\n99".encode(), hashlib.sha256)
    return f"SharedAccessSignature sr={resource}&sig={quote_plus(base64.b64encode(digest))}&se=99&skn={name}"


def test_without_a_good_token_no_link_is_opened(client: Client) -> None:
    errors = import_module("proton.utils")
    for token in (
        "",
        "SharedAccessSignature sr=a",
        signature("RootManageSharedAccessKey", "another"),
        signature("me", "k"),
    ):
        status, told = client.ask("$cbs", "put-token", token)
        assert status == UNAUTHORIZED
        assert "RootManageSharedAccessKey" in told
    with pytest.raises(errors.LinkDetached, match="No good token"):
        client.connection.create_sender(queue())


def test_an_operation_that_is_not_known_is_refused_by_name(authorized: Client) -> None:
    status, told = authorized.ask(f"{queue()}/$management", "com.microsoft:forward", {})
    assert status == BAD
    assert "'com.microsoft:forward'" in told
    assert "renew-lock" in told


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        ("schedule-message", {}),
        ("schedule-message", {"messages": [{"message-id": "a"}]}),
        ("schedule-message", {"messages": [{"message-id": "a", "message": 5}]}),
        ("cancel-scheduled-message", {"sequence-numbers": None}),
        ("peek-message", {"from-sequence-number": "one", "message-count": 1}),
        ("receive-by-sequence-number", {}),
        ("renew-session-lock", {}),
        ("peek-message", "no map"),
    ],
)
def test_a_request_that_lacks_something_is_refused(authorized: Client, operation: str, body: Any) -> None:
    status, told = authorized.ask(f"{queue()}/$management", f"com.microsoft:{operation}", body)
    assert status == BAD
    assert operation in told or "no AMQP message" in told


def test_sessions_are_listed_page_by_page(authorized: Client) -> None:
    node = f"{queue('sessions')}/$management"
    assert authorized.ask(node, "com.microsoft:get-message-sessions", {"skip": 0, "top": 10})[0] == NO_CONTENT
