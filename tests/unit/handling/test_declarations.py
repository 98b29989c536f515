"""Declarations: a mistake is a `ConfigurationError` where it stands, which says what was given and what to give."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from functools import partial, wraps
from operator import attrgetter
from types import ModuleType
from typing import Any, Final

import pytest
from pydantic import BaseModel, Field

import exactlyonce
from exactlyonce import (
    Api,
    ConfigurationError,
    Context,
    Destination,
    Entity,
    EntityKey,
    Envelope,
    Outbox,
    VersionStream,
    message,
)
from exactlyonce.errors import HandlerFailed, NoStateReturned, UnknownDestination
from exactlyonce.handling import messages
from exactlyonce.hosting import PlainJson
from exactlyonce.hosting.config.checks import unheard_by
from exactlyonce.testing import App, run
from exactlyonce.values.frozen_json import Json


@message("declared.placed", formerly=("declared.made",))
class Placed(BaseModel):
    order: str = "o"


@message("declared.paid")
class Paid(BaseModel):
    order: str = "o"


@message("declared.told", event=True)
class Told(BaseModel):
    order: str = "o"


class Unregistered(BaseModel):
    order: str = "o"


class Order(BaseModel):
    placed: int = 0


class Undefined(BaseModel):
    later: Later = None  # type: ignore[name-defined]  # noqa: F821


def ends() -> int:
    raise SystemExit


class Faulty(BaseModel):
    placed: int = Field(default_factory=ends)


class Unshown:
    def __call__(self) -> None: ...

    def __repr__(self) -> str:
        raise SystemExit


@dataclass
class Plain:
    placed: int = 0


def entity(**more: Any) -> Entity[Order]:
    return Entity(**{"name": "order", "state": Order, "container": "orders", "strategy": Outbox(), **more})


def same(state: Any, given: Any, context: Context) -> Any:
    return state


async def asynchronous(given: Placed) -> str:
    return given.order


def key(given: Any) -> str:
    return str(given.order)


ORDERS: Final = entity()
library: Final[Any] = exactlyonce
loose: Final[Any] = ORDERS
untyped_app: Final[Any] = App
"""Without their types: a type checker reports these mistakes, too."""
HOUR: Final = timedelta(hours=1)


def api(**more: Any) -> Api:
    return Api(**{"name": "bank", "base": "https://bank.example", "key_lifetime": HOUR, **more})


def plain_json(**more: Any) -> PlainJson:
    return PlainJson(**{"model": Placed, "source": "web", "id": key, "time": same, **more})


def handled(handler: Any = same, model: Any = Placed, key: Any = key) -> Any:
    return entity().handles(model, key=key)(handler)


MISTAKES: Final[list[tuple[Callable[[], Any], str]]] = [
    (lambda: entity(name=""), "name of an entity is an empty string"),
    (lambda: entity(name=Order), "name of an entity is the class Order"),
    (
        lambda: entity(state=Order()),
        "state has to be a pydantic model or a dataclass; this is an Order. Give the class",
    ),
    (lambda: entity(state=Plain()), "this is a Plain"),
    (lambda: entity(state=None), "this is None"),
    (lambda: entity(state=dict), "A state has to be a pydantic model or a dataclass; .*dict.* is neither"),
    (lambda: entity(container=None), "container= of entity 'order' is None"),
    (lambda: entity(container=""), "container= of entity 'order' is an empty string"),
    (lambda: entity(partition_key=["/a"]), "partition_key= of entity 'order' is a list. Give a tuple"),
    (lambda: entity(partition_key=("/a", 1)), "partition key path is an int"),
    (lambda: entity(partition_key=None), "partition_key= of entity 'order' is None"),
    (
        lambda: entity(strategy=Outbox),
        r"strategy= of entity 'order' is the class Outbox. Give an instance: .*Outbox\(\)",
    ),
    (lambda: entity(strategy=ORDERS), "strategy= of entity 'order' is an Entity"),
    (lambda: entity(strategy="outbox"), "strategy= of entity 'order' is a str"),
    (lambda: entity(strategy=None), "strategy= of entity 'order' is None"),
    (lambda: loose.handles(same), r"handles of entity 'order' has no key=\. Write @"),
    (lambda: handled(key="order"), "key= of the handler of Placed, is a str. Give a function"),
    (lambda: handled(key=str), "key= of the handler of Placed, is the class str"),
    (lambda: handled(key=lambda: "o"), r"key= of the handler of Placed, .* has to take \(message\)"),
    (lambda: handled(key=asynchronous), r"key= of the handler of Placed, asynchronous is async.*with context\.call"),
    (lambda: handled(Order), "The handler is the class Order"),
    (lambda: handled(5), "The handler is an int"),
    (lambda: handled(None), "The handler is None"),
    (lambda: handled(model=Unregistered), "Unregistered is not a message type"),
    (lambda: handled(model=Placed()), "A message type is a class, and this is a Placed"),
    (lambda: handled(model="declared.placed"), "this is a str"),
    (lambda: loose.applies(same), "A message type is a class, and this is a function"),
    (lambda: loose.applies(Unregistered), "Unregistered is not a message type"),
    (lambda: loose.applies(Placed)(Order), "The applier is the class Order"),
    (lambda: library.message(Unregistered), "stands above Unregistered without a name"),
    (lambda: library.message(5), "first argument of @message.* is an int"),
    (lambda: library.message(""), "is an empty string"),
    (lambda: library.message("declared.x", formerly="old"), "formerly= .* is a str. Give a tuple"),
    (lambda: library.message("declared.x", formerly=("",)), "formerly= .* is an empty string"),
    (lambda: library.message("declared.x", formerly=(5,)), "formerly= .* is an int"),
    (lambda: library.message("declared.x", event=1), "event= .* is an int"),
    (lambda: library.message("declared.x")(same), "A message has to be .*; this is a function"),
    (lambda: library.message("declared.x")(int), "A message has to be .*; .*int.* is neither"),
    (lambda: library.message("declared.placed")(Paid), "Placed and .*Paid both travel as 'declared.placed'"),
    (lambda: library.Destination(""), "name of a destination is an empty string"),
    (lambda: library.Destination(ORDERS), "name of a destination is an Entity"),
    (lambda: library.Destination("q", receives=Placed), r"receives= .* is the class Placed. Give a tuple, such as"),
    (lambda: library.Destination("q", receives=[Placed]), "receives= .* is a list"),
    (lambda: library.Destination("q", receives=(Unregistered,)), "Unregistered is not a message type"),
    (lambda: library.Destination("q", receives=("declared.placed",)), "this is a str"),
    (lambda: library.Destination("q", to=Destination("r")), "to= of destination 'q' is a Destination"),
    (lambda: library.Destination("q", to=Order), "to= of destination 'q' is the class Order"),
    (lambda: library.Destination("q", to="other", entity_by="id"), "entity_by= .* is a str"),
    (lambda: library.Destination("q", session_by="id"), "session_by= .* is a str"),
    (lambda: library.Destination("q", to=ORDERS, ordered="no"), "ordered= .* is a str"),
    (lambda: library.Destination("q", stable_time="yes"), "stable_time= of destination 'q' is a str"),
    (lambda: plain_json(stable_time=1), "stable_time= of a PlainJson is an int"),
    (lambda: library.Destination("q", to=Entity), "to= of destination 'q' is the class Entity"),
    (lambda: untyped_app(ORDERS, apis={"bank": same}), "A service in apis= is a str"),
    (
        lambda: untyped_app(ORDERS).send(ORDERS, Placed),
        r"A message is an instance, and this is the class Placed. Give Placed\(",
    ),
    (lambda: api(name=None), "name of an Api is None"),
    (lambda: api(base=5), "base= of Api 'bank' is an int"),
    (lambda: api(key_lifetime=3600), "key_lifetime= of Api 'bank' is an int. Give a timedelta"),
    (lambda: api(timeout="30"), "timeout= of Api 'bank' is a str"),
    (lambda: api(clock_tolerance=None), "clock_tolerance= of Api 'bank' is None"),
    (lambda: api(most_at_once="16"), "most_at_once= of Api 'bank' is a str"),
    (lambda: api(most_bytes=True), "most_bytes= of Api 'bank' is a bool"),
    (lambda: api(credentials={"Authorization": "secret"}), "credentials= of Api 'bank' is a dict. Give a function"),
    (lambda: api(key_header=None), "key_header= of Api 'bank' is None"),
    (lambda: api(headers="ETag"), "headers= of Api 'bank' is a str. Give a tuple"),
    (lambda: library.VersionStream("20"), "snapshot_every= of a version stream is a str"),
    (lambda: library.Resequencer(gap_timeout=5), "gap_timeout= of a resequencer is an int"),
    (lambda: library.Resequencer(max_wait=None), "max_wait= of a resequencer is None"),
    (lambda: library.Rebuild("order", "orders"), "of= of a Rebuild is a str"),
    (lambda: library.Rebuild(entity(strategy=VersionStream()), Destination("q")), "through= of a Rebuild.*Destination"),
    (lambda: plain_json(model="declared.placed"), "A message type is a class"),
    (lambda: plain_json(source=None), "source= of a PlainJson is None"),
    (lambda: plain_json(id="id"), "id= of a PlainJson, is a str"),
    (lambda: plain_json(time=None), "time= of a PlainJson, is None"),
    (lambda: untyped_app(Destination("q")), "The entities of an App have a Destination"),
    (lambda: untyped_app(Order), "The entities of an App have the class Order"),
    (lambda: untyped_app(ORDERS, destinations=(ORDERS,)), "destinations= of an App have an Entity"),
    (
        lambda: untyped_app(ORDERS, destinations=Destination("q")),
        "destinations= of an App are a Destination. Give a tuple",
    ),
    (lambda: untyped_app(ORDERS, destinations="q"), "destinations= of an App are a str. Give a tuple"),
    (
        lambda: untyped_app(ORDERS, destinations=(Destination("q", (Paid,), to=ORDERS),)),
        "'q' receives Paid and leads to",
    ),
    (lambda: untyped_app(ORDERS, queues=["q"]), "queues= of an App is a list"),
    (lambda: untyped_app(ORDERS, queues={"q": "order"}), "receiver in queues= is a str"),
    (lambda: untyped_app(ORDERS, apis=[api()]), "apis= of an App is a list"),
    (lambda: untyped_app(ORDERS, destinations=(api(),), apis={api(): 5}), "What plays 'bank' in apis= is an int"),
    (lambda: untyped_app(ORDERS, now="today"), "now= of an App is a str"),
    (lambda: untyped_app(ORDERS, now=datetime(2026, 1, 1)), "now= of an App has no time zone"),  # noqa: DTZ001
    (lambda: untyped_app(ORDERS).send(None, Placed()), "goes to a destination, and this is None"),
    (
        lambda: handled(partial(lambda secret, state, given: state, "sec" + "ret")),
        r"has to take \(state, message, context",
    ),
    (lambda: handled(Unshown()), r"The handler Unshown has to take"),
    (lambda: entity(container=" "), "container= of entity 'order' is not the name of a container"),
    (lambda: entity(container="a/b"), "is not the name of a container"),
    (lambda: entity(partition_key=("/a", "/a")), "names another property"),
    (lambda: entity(partition_key=("/a/b", "/a")), "none leads into another"),
    (lambda: entity(partition_key="/id/region"), "or into id"),
    (lambda: entity(removed=(5,)), "name in removed= or foreign= is an int"),
    (lambda: entity(state=Undefined), "Undefined cannot be the state of an entity: .*not fully defined"),
    (lambda: entity(state=Faulty), "Faulty cannot be the state .* making one raised SystemExit"),
    (lambda: library.message("declared.x", formerly=("declared.x",)), "has a name twice, or the present one"),
    (lambda: library.message("declared.x", formerly=("a", "a")), "has a name twice"),
    (lambda: library.Destination("q", to="other", entity_by=lambda a, b: a), r"entity_by= .* has to take \(message\)"),
    (lambda: library.Destination("q", session_by=asynchronous), "session_by= .* is async"),
    (lambda: api(base="https://[bank/"), "base= is an address"),
    (lambda: api(base="https://bank:port"), "base= is an address"),
    (lambda: api(base="https://bank/\n"), "base= is an address"),
    (lambda: api(base="https://me:secret@bank"), "base= is an address"),
    (lambda: api(credentials=lambda request: {}), r"credentials= of Api 'bank' has to take \(\)"),
    (lambda: plain_json(id=lambda: "1"), r"id= of a PlainJson, .* has to take \(body\)"),
    (lambda: plain_json(time=asynchronous), "time= of a PlainJson, asynchronous is async"),
]


@pytest.mark.parametrize(("mistake", "says"), MISTAKES)
def test_a_mistake_is_refused_where_it_stands(mistake: Callable[[], Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says) as caught:
        mistake()
    assert "secret" not in str(caught.value)


def test_any_callable_that_takes_a_message_may_name_its_entity() -> None:
    for names in (attrgetter("order"), partial(key), lambda given, *rest: given.order):
        orders = entity()
        orders.handles(Placed, key=names)(same)
        assert orders.ref_of(Envelope("web", "1", "declared.placed", Json.of({"order": "o-1"}))).id == "o-1"


def injecting(function: Any) -> Any:
    @wraps(function)
    def handler(state: Any, given: Any, context: Context) -> Any:
        return function(state, given, context, "injected")

    return handler


def test_a_decorator_may_bring_parameters_of_the_handler_that_it_wraps() -> None:
    orders = entity()
    orders.handles(Placed, key=key)(injecting(lambda state, given, context, brought: Order(placed=len(brought))))
    app = App(orders)
    app.send(orders, Placed())
    assert app.state(orders, "o") == Order(placed=8)


class Names(str, Enum):
    ORDERS = "orders-x"
    PLACED = "declared.enumerated"


def test_a_name_of_an_enum_is_its_text() -> None:
    orders = entity(name=Names.ORDERS, container=Names.ORDERS)
    orders.handles(Placed, key=lambda given: EntityKey(Names.ORDERS, Names.PLACED))(same)
    ref = orders.ref(orders._registrations["declared.placed"].key(Placed()))
    names: list[Any] = [orders.name, orders.container, Destination(Names.ORDERS).name, api(name=Names.ORDERS).name]
    for name in (*names, ref.type, ref.id):
        assert (type(name), name) == (str, "orders-x")
    assert [type(value) for value in ref.partition] == [str]
    assert type(messages.message_type(message(Names.PLACED)(Faulty)).name) is str


@pytest.mark.parametrize("to", [ORDERS, Placed, None])
def test_a_message_goes_to_a_destination_and_to_nothing_else(to: Any) -> None:
    with pytest.raises(ConfigurationError, match="A message goes to a destination, and this is"):
        run(lambda state, given, context: context.send(to, Placed()), Order(), Placed())


@pytest.mark.parametrize(
    ("bank", "then", "says"),
    [
        ("bank", Placed, r"first argument of context\.call is a str"),
        (api(), Placed, "the class Placed is no type of replies"),
        (api(), "reply", "A message type is a class, and this is a str"),
    ],
)
def test_a_call_names_an_api_and_a_type_of_replies(bank: Any, then: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        run(lambda state, _, context: context.call(bank, "GET", "/", then=then), Order(), Placed())


def test_an_error_of_the_library_is_its_own_cause_no_second_time() -> None:
    def nothing(state: Order, given: Placed, context: Context) -> Any:
        return None

    def refused(state: Order, given: Placed, context: Context) -> Any:
        raise HandlerFailed("The order is closed.")

    class Closed(HandlerFailed):
        pass

    def own(state: Order, given: Placed, context: Context) -> Any:
        raise Closed("The order is closed.")

    for handler, kind, cause in (
        (nothing, NoStateReturned, None),
        (refused, HandlerFailed, None),
        (own, HandlerFailed, Closed),
    ):
        orders = entity()
        orders.handles(Placed, key=key)(handler)
        with pytest.raises(kind) as caught:
            App(orders).send(orders, Placed())
        assert (None if caught.value.__cause__ is None else type(caught.value.__cause__)) is cause
        assert handler is nothing or any(item.name == handler.__name__ for item in caught.traceback)


SOURCE: Final = """
from pydantic import BaseModel
from exactlyonce import message

@message("declared.twice")
class Twice(BaseModel):
    order: str = "o"

class State(BaseModel):
    placed: int = 0
"""


@pytest.fixture
def imported(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ModuleType]]:
    def load(name: str, file: str | None = None) -> ModuleType:
        module = ModuleType(name)
        if file is not None:
            module.__file__ = file
        monkeypatch.setitem(sys.modules, name, module)
        exec(SOURCE, module.__dict__)  # noqa: S102
        return module

    yield load
    messages._NAMED.pop("declared.twice", None)


@pytest.mark.parametrize(
    ("first", "second", "is_one"),
    [
        (("shop.orders", None), ("shop.orders", None), True),
        (("orders", None), ("shop.orders", None), True),
        (("shop.orders", None), ("orders", None), True),
        (("__main__x", "orders.py"), ("shop.orders", "orders.py"), True),
        (("orders", None), ("bills", None), False),
        (("orders", None), ("backorders", None), False),
        (("a.orders", None), ("b.orders", None), False),
        (("orders", "orders.py"), ("shop.orders", "shop/orders.py"), False),
    ],
)
def test_a_name_is_for_one_module_which_may_be_reloaded_or_imported_under_two_names(
    imported: Callable[..., ModuleType], first: tuple[str, str | None], second: tuple[str, str | None], *, is_one: bool
) -> None:
    imported(*first)
    both = f"{first[0]}.Twice and {second[0]}.Twice both travel as 'declared.twice'"
    with nullcontext() if is_one else pytest.raises(ConfigurationError, match=both):
        imported(*second)


def test_the_state_of_a_module_that_was_imported_twice_is_named_with_both_modules(
    imported: Callable[..., ModuleType],
) -> None:
    one, other = imported("orders"), imported("shop.orders")
    orders: Entity[Any] = entity(state=one.State)
    orders.handles(Placed, key=key)(lambda state, given, context: other.State(placed=1))
    with pytest.raises(
        HandlerFailed, match=r"shop\.orders\.State.*keeps orders\.State: one module was imported under two"
    ):
        App(orders).send(orders, Placed())


def announcing(handler: Any, *destinations: Destination, handled: tuple[type, ...] = (Placed,)) -> App:
    """An application whose handler of `Placed` announces something."""
    orders = entity()
    for model in handled:
        orders.handles(model, key=key)(handler if model is Placed else same)
    app = App(orders, destinations=destinations)
    app.send(orders, Placed())
    return app


def announce_paid(state: Order, given: Placed, context: Context) -> Order:
    context.announce(Paid())
    return state


def announce_paid_late(state: Order, given: Placed, context: Context) -> Order:
    kind = Paid if given.order else Told
    context.announce(kind())
    return state


def announce_told(state: Order, given: Placed, context: Context) -> Order:
    context.announce(Told())
    return state


def test_a_type_that_nobody_receives_is_refused_at_the_start_where_the_code_shows_it() -> None:
    with pytest.raises(
        ConfigurationError, match="announce_paid of entity 'order' announces it: No destination receives Paid"
    ):
        announcing(announce_paid)
    with pytest.raises(ConfigurationError, match="a handler of this application takes it"):
        announcing(announce_paid, Destination("others", receives=(Told,)), handled=(Placed, Paid))


def test_a_type_that_nobody_receives_is_refused_when_it_is_announced() -> None:
    with pytest.raises(
        UnknownDestination, match=r"No destination receives Paid.*receives=.*context\.send.*event=True"
    ) as caught:
        announcing(announce_paid_late)
    assert "No destination receives Paid" in (caught.value.kept or "")


def test_an_event_may_be_announced_before_anybody_receives_it() -> None:
    assert announcing(announce_told).parked() == ()
    heard = announcing(announce_told, Destination("told", receives=(Told,)))
    assert heard.outputs("told") == (Told(),)


def test_an_event_that_a_handler_takes_and_no_destination_receives_is_refused() -> None:
    with pytest.raises(
        ConfigurationError, match=r"No destination receives Told.*a handler of this application takes it"
    ):
        announcing(announce_told, handled=(Placed, Told))


def test_a_unit_test_refuses_as_the_application_does() -> None:
    paid = Destination("paid", receives=(Paid,))
    assert run(announce_paid, Order(), Placed()).messages == (Paid(),)
    assert run(announce_paid, Order(), Placed(), destinations=(paid, api())).messages == (Paid(),)
    with pytest.raises(UnknownDestination, match="No destination receives Paid"):
        run(announce_paid, Order(), Placed(), destinations=(Destination("paid"),))


def test_the_doctor_names_a_handler_that_may_announce_in_vain() -> None:
    orders = entity()
    orders.handles(Placed, key=key)(announce_paid_late)
    assert list(unheard_by((orders,), frozenset())) == []
    orders.handles(Paid, key=key)(same)
    (text,) = unheard_by((orders,), frozenset())
    assert "announce_paid_late of entity 'order' announces, and names Paid" in text
    assert list(unheard_by((orders,), {"declared.paid"})) == []
