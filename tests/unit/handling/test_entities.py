"""Entity types: refused handlers, and the entity of a message."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from exactlyonce import ConfigurationError, Context, Entity, EntityKey, Envelope, Outbox, message
from exactlyonce.errors import HandlerFailed, InvalidMessage, UnknownMessageType
from exactlyonce.handling.messages import message_type
from exactlyonce.values.envelope import EntityRef, PartitionValue
from exactlyonce.values.frozen_json import Json


@message("orders.place", formerly=("orders.make", "orders.create"))
@dataclass
class Place:
    order: str
    region: str = "eu"


@message("orders.create")
@dataclass
class Create:
    order: str


@dataclass
class Order:
    placed: int = 0


def orders(*paths: str) -> Entity[Order]:
    return Entity("order", state=Order, container="orders", partition_key=paths or "/id", strategy=Outbox())


def place(state: Order, given: Place, context: Context) -> Order:
    return Order(state.placed + 1)


def envelope(type: str = "orders.place", **data: Any) -> Envelope:
    return Envelope("web", "m-1", type, Json.of({"order": "o-1", **data}))


async def asynchronous(state: Order, given: Place, context: Context) -> Order:
    return state


async def streaming(state: Order, given: Place, context: Context) -> AsyncIterator[Order]:
    yield state


def yielding(state: Order, given: Place, context: Context) -> Iterator[Order]:
    yield state


class Asynchronous:
    async def __call__(self, state: Order, given: Place, context: Context) -> Order:
        return state

    method = __call__


ASYNC: tuple[Any, ...] = (asynchronous, Asynchronous(), Asynchronous().method)
PARTIAL = (*(functools.partial(item) for item in ASYNC), functools.partial(functools.partial(asynchronous)))


@pytest.mark.parametrize("handler", [streaming, yielding, *ASYNC, *PARTIAL])
def test_a_handler_that_is_not_a_plain_function_is_refused(handler: Any) -> None:
    with pytest.raises(ConfigurationError, match="plain function"):
        orders().handles(Place, key=lambda given: given.order)(handler)


class Bound:
    def method(self, state: Order, given: Place, context: Context) -> Order:
        return state


@pytest.mark.parametrize(
    "handler",
    [
        place,
        lambda state, given, context, *rest: state,
        lambda state, given, context, clock=None: state,
        functools.partial(lambda clock, state, given, context: state, "clock"),
        Bound().method,
    ],
)
def test_any_callable_of_state_message_and_context_can_be_a_handler(handler: Any) -> None:
    entity = orders()
    assert entity.handles(Place, key=lambda given: given.order)(handler) is handler
    assert entity.read(envelope())[0].handler is handler


@pytest.mark.parametrize(
    "handler",
    [
        lambda: 0,
        lambda state, given: state,
        lambda a, b, c, d: a,
        lambda a, b, c, *, d: a,
        functools.partial(place, Order()),
    ],
)
def test_a_handler_with_other_parameters_is_refused(handler: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"\(state, message, context\)"):
        orders().handles(Place, key=lambda given: given.order)(handler)


@pytest.mark.parametrize("model", [Place, Create], ids=["its own name", "a former name of another type"])
def test_a_name_of_messages_has_one_handler_on_an_entity(model: type) -> None:
    entity = orders()
    entity.handles(Place, key=lambda given: given.order)(place)
    with pytest.raises(ConfigurationError, match=rf"two handlers.*{message_type(model).name}"):
        entity.handles(model, key=lambda given: given.order)(lambda state, given, context: state)


@pytest.mark.parametrize("type", ["orders.place", "orders.make", "orders.create"])
def test_messages_are_read_under_their_name_and_every_former_one(type: str) -> None:
    entity = orders()
    entity.handles(Place, key=lambda given: given.order)(place)
    assert entity.read(envelope(type))[1] == Place("o-1")
    assert entity.models[type] is Place


def test_an_unknown_type_says_what_the_entity_handles() -> None:
    entity = orders()
    entity.handles(Place, key=lambda given: given.order)(place)
    with pytest.raises(
        UnknownMessageType, match=r"web/m-1.*'orders\.lost'.*orders\.create, orders\.make, orders\.place"
    ):
        entity.ref_of(envelope("orders.lost"))
    with pytest.raises(UnknownMessageType, match="handles: none"):
        orders().ref_of(envelope())


def test_a_key_has_one_value_for_each_path() -> None:
    assert orders().ref("o-1") == EntityRef("order", ("o-1",), "o-1")
    assert orders("/region").ref(EntityKey("o-1", "eu")) == EntityRef("order", ("eu",), "o-1")
    entity = orders("/region", "/year")
    assert entity.ref(EntityKey("o-1", ("eu", 2026))) == EntityRef("order", ("eu", 2026), "o-1")
    for key in ("o-1", EntityKey("o-1", "eu"), EntityKey("o-1", ("eu", 1, 2))):
        with pytest.raises(ConfigurationError, match="/region, /year"):
            entity.ref(key)


def test_numbers_that_cosmos_takes_for_the_same_name_the_same_entity() -> None:
    entity = orders("/year")
    refs = [entity.ref(EntityKey("o-1", year)) for year in (2026, 2026.0)]
    assert refs[0].key == refs[1].key == '["order",2026,"o-1"]'
    assert refs[0].source == refs[1].source


PARTITIONS: list[Any] = [float("nan"), float("inf"), None, ["eu"], {"a": 1}]
IDS: list[Any] = ["", "a/b", "a ", "x" * 256, None, 7]


@pytest.mark.parametrize(
    ("id", "partition", "says"),
    [*(("o-1", value, "partition key") for value in PARTITIONS), *((id, "eu", "not a document id") for id in IDS)],
)
def test_a_key_that_cosmos_does_not_take_is_the_messages_fault(id: Any, partition: Any, says: str) -> None:
    with pytest.raises(InvalidMessage, match=says):
        orders("/region").ref(EntityKey(id, partition))


@pytest.mark.parametrize(
    "paths", [("id",), ("/",), ("/a//b",), ("/a/",), ("",), ("/a", "b"), (), ("/a", "/b", "/c", "/d")]
)
def test_a_partition_key_has_one_to_three_paths(paths: tuple[str, ...]) -> None:
    with pytest.raises(ConfigurationError, match="path"):
        Entity("order", state=Order, container="orders", partition_key=paths, strategy=Outbox())


def test_an_invalid_key_is_the_messages_fault() -> None:
    entity = orders("/region")
    entity.handles(Place, key=lambda given: EntityKey(given.order, float("nan")))(place)
    for order in ("", "a/b", "o-1"):
        with pytest.raises(InvalidMessage, match="web/m-1"):
            entity.ref_of(envelope(order=order))


@pytest.mark.parametrize(
    ("key", "gave"),
    [
        (None, "None"),
        (7, "an int"),
        (("o-1", "eu"), "a tuple"),
        (EntityKey(7, "eu"), "an EntityKey whose id is an int"),  # type: ignore[arg-type]  # The mistake.
        (EntityKey("o-1", None), "an EntityKey whose partition key has None"),  # type: ignore[arg-type]
        (EntityKey("o-1", ("eu", [])), "an EntityKey whose partition key has a list"),  # type: ignore[arg-type]
    ],
    ids=str,
)
def test_a_key_function_that_gives_no_key_is_the_handlers_fault(key: Any, gave: str) -> None:
    entity = orders()
    entity.handles(Place, key=lambda given: key)(place)
    with pytest.raises(HandlerFailed, match=rf"web/m-1: the key= of its handler gave {gave}\. Return"):
        entity.ref_of(envelope())


def test_a_key_function_that_raises_is_the_handlers_fault_and_names_the_message() -> None:
    entity = orders()
    entity.handles(Place, key=lambda given: given.order[99])(place)
    with pytest.raises(HandlerFailed, match=r"web/m-1.*key=.*IndexError") as caught:
        entity.ref_of(envelope())
    assert isinstance(caught.value.__cause__, IndexError)


@pytest.mark.parametrize(
    "source", ["web", "", "/", "order/", "web/order", "order/1/2/3", "order/%2F", "order/1?x", "order/1#"]
)
def test_a_foreign_source_names_no_entity(source: str) -> None:
    assert orders().ref_of_source("order/1") == orders().ref("1")
    with pytest.raises(InvalidMessage):
        orders().ref_of_source(source)


@pytest.mark.parametrize("partition", [("eu", 7), (True, "=7"), (1.5, ""), ("7", False)])
def test_an_entity_with_any_partition_key_is_found_by_its_source(partition: tuple[PartitionValue, ...]) -> None:
    entity = orders("/region", "/year")
    ref = entity.ref(EntityKey("o-1", partition))
    assert entity.ref_of_source(ref.source) == ref
    with pytest.raises(InvalidMessage):
        entity.ref_of_source(ref.source.replace("order", "parcel"))
