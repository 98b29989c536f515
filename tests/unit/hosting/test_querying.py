"""Querying entities: those that are there, each with its key, by the application."""

from __future__ import annotations

import pytest

from exactlyonce import ConfigurationError, EntityKey
from exactlyonce.testing import App
from examples.shop.fakes import opened
from examples.shop.messages import PlaceOrder
from examples.shop.orders import Order, orders


@pytest.fixture
def app() -> App:
    app = opened()
    for number in range(3):
        app.send(orders, PlaceOrder(order=f"o-{number}", customer="ann", item="shoes", amount=80))
    return app


def found(app: App, where: str = "", partition: str | tuple[str, ...] | None = None) -> dict[EntityKey, Order]:
    async def all_of() -> dict[EntityKey, Order]:
        return {key: order async for key, order in app.once.query(orders, where, partition=partition)}

    return app.run(all_of())


def test_all_entities_are_found_with_their_keys(app: App) -> None:
    assert [key.id for key in found(app)] == ["o-0", "o-1", "o-2"]
    assert found(app)[EntityKey("o-1", ("o-1",))].status == "paid"


def test_a_partition_has_its_own_only(app: App) -> None:
    assert list(found(app, partition="o-1")) == [EntityKey("o-1", ("o-1",))] == list(found(app, partition=("o-1",)))


def test_a_partition_with_another_number_of_values_is_refused(app: App) -> None:
    with pytest.raises(ConfigurationError, match=r"partition key /id; partition= has 2 value\(s\)"):
        found(app, partition=("a", "b"))


def test_a_store_in_memory_takes_no_condition(app: App) -> None:
    with pytest.raises(ConfigurationError, match="knows no SQL"):
        found(app, "c.amount > 1")


def test_a_parameter_that_would_take_the_place_of_the_query_s_own_is_refused(app: App) -> None:
    async def first() -> object:
        return await anext(app.once.query(orders, "c.kind = @type", type="shoes"))

    with pytest.raises(ConfigurationError, match="has no parameter @type"):
        app.run(first())
