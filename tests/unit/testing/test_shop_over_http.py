"""The HTTP door of the shop: its functions, on an application in memory."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import azure.functions as func
import pytest

from exactlyonce.testing import App
from examples.shop.fakes import opened

SETTINGS = {
    "COSMOS__accountEndpoint": "https://shop.documents.azure.com:443/",
    "COSMOS__database": "shop",
    "AzureWebJobsStorage__queueServiceUri": "https://shop.queue.core.windows.net",
}


@pytest.fixture
def shop() -> App:
    return opened()


@pytest.fixture
def functions(shop: App, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The function app as it is deployed, with the application in memory in place of that on Azure."""
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delitem(sys.modules, "examples.shop.function_app", raising=False)
    module = importlib.import_module("examples.shop.function_app")
    monkeypatch.setattr(module, "once", shop.once)
    yield module
    monkeypatch.delitem(sys.modules, "examples.shop.function_app", raising=False)


def call(shop: App, function: Any, request: func.HttpRequest) -> func.HttpResponse:
    response: func.HttpResponse = shop.run(function._function.get_user_function()(request))
    return response


def put(order: str, body: object, key: str = '"k-1"') -> func.HttpRequest:
    return func.HttpRequest(
        "PUT",
        f"https://shop.example.org/api/orders/{order}",
        headers={"Idempotency-Key": key, "Content-Type": "application/json"},
        route_params={"order": order},
        body=json.dumps(body).encode(),
    )


SHOES = {"customer": "ann", "item": "shoes", "amount": 80}


def test_an_order_is_placed_once_and_a_retry_gets_the_same_answer(shop: App, functions: ModuleType) -> None:
    first = call(shop, functions.place_order, put("o-1", SHOES))
    again = call(shop, functions.place_order, put("o-1", SHOES))
    assert (first.status_code, first.get_body()) == (202, b'{"order":"o-1","status":"placed"}')
    assert again.get_body() == first.get_body()
    assert again.headers["Idempotent-Replayed"] == "true"
    assert len(shop.outputs("shipping")) == 1


def test_another_order_under_the_key_and_one_that_makes_no_sense_are_refused(shop: App, functions: ModuleType) -> None:
    call(shop, functions.place_order, put("o-1", SHOES))
    assert call(shop, functions.place_order, put("o-1", {**SHOES, "amount": 90})).status_code == 422
    assert call(shop, functions.place_order, put("o-2", {"amount": -1}, '"k-2"')).status_code == 400


def test_a_customer_sees_what_was_paid(shop: App, functions: ModuleType) -> None:
    def show() -> func.HttpResponse:
        request = func.HttpRequest(
            "GET", "https://shop.example.org/api/customers/ann", route_params={"customer": "ann"}, body=b""
        )
        return call(shop, functions.show_customer, request)

    assert show().status_code == 404
    call(shop, functions.place_order, put("o-1", SHOES))
    assert show().get_body() == b'{"paid":["o-1"],"cancelled":[]}'
