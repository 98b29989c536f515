"""One line serves an application: what it registers is what its author would register function by function."""

from __future__ import annotations

from typing import Any, List  # noqa: UP035  # As the worker takes it.

import azure.functions as func
import pytest

from exactlyonce import Api, ConfigurationError, Destination, Entity, Resequencer
from exactlyonce.hosting import ExactlyOnce
from tests.calling import ORDERS, PAYMENTS, Charged, charged, orders
from tests.samples import Account, Deposit, Deposited, accounts
from tests.unit.bus import delivered
from tests.unit.hosting.test_application import BUS, application

STORAGE = "AzureWebJobsStorage"
TO_ACCOUNTS = Destination("account-changes", receives=(Deposit,), to="account")
AUDIENCE = Destination("audience", receives=(Deposited,))
"""Another application's."""

Functions = dict[str, dict[str, Any]]


def registered(app: func.FunctionApp) -> Functions:
    """The bindings of each function."""
    return {str(function.get_function_name()): function.get_bindings_dict() for function in app.get_functions()}


def on_storage(**mapping: str) -> ExactlyOnce:
    return application(accounts(), destinations=(TO_ACCOUNTS, AUDIENCE), mapping=mapping)


def on_bus() -> ExactlyOnce:
    return application(accounts(), destinations=(TO_ACCOUNTS, AUDIENCE), storage=None, bus=BUS, transport="servicebus")


def served(once: ExactlyOnce, *destinations: Destination | Api, **options: Any) -> Functions:
    app = func.FunctionApp()
    once.serve_on(app, *destinations, **options)
    return registered(app)


def by_hand(*queues: tuple[str, str]) -> Functions:
    """Functions on storage queues, each with its name, and a sweeper."""
    app = func.FunctionApp()
    for name, queue in queues:

        async def take(message: func.QueueMessage) -> None: ...

        take.__name__ = name
        app.queue_trigger(arg_name="message", queue_name=queue, connection=STORAGE)(take)
    on_storage().sweep_on(app)
    return registered(app)


@pytest.mark.parametrize(("mapped", "queue"), [({}, "account-changes"), ({"account-changes": "changes"}, "changes")])
def test_a_storage_queue_gets_its_function_and_that_of_its_poison_queue_and_the_application_a_sweeper(
    mapped: dict[str, str], queue: str
) -> None:
    expected = ("process_account_changes", queue), ("settle_account_changes", f"{queue}-poison")
    assert served(on_storage(**mapped)) == by_hand(*expected)


def test_calls_to_a_service_are_made_and_settled() -> None:
    expected = (
        *(("process_orders", "orders"), ("settle_orders", "orders-poison")),
        *(("call_payments", "payments"), ("settle_payments", "payments-poison")),
    )
    once = application(orders(), destinations=(Destination("orders", receives=(Charged,), to="order"), PAYMENTS))
    assert served(once) == by_hand(*expected)
    once = application(orders(), destinations=(ORDERS, PAYMENTS))
    assert served(once, PAYMENTS) == by_hand(*expected[2:])


def with_the_rest_by_hand(app: func.FunctionApp, dead_letters: str) -> Functions:
    """The functions of an app, one on dead letters, and a sweeper."""

    @app.service_bus_queue_trigger(arg_name="message", queue_name=dead_letters, connection="ServiceBus")
    async def settle_account_changes(message: func.ServiceBusMessage) -> None: ...

    on_bus().sweep_on(app)
    return registered(app)


@pytest.mark.parametrize("sessions", [False, True])
def test_a_queue_of_service_bus_gets_its_function_and_that_of_its_dead_letters(sessions: bool) -> None:
    app, queue = func.FunctionApp(), "account-changes"

    @app.service_bus_queue_trigger(
        arg_name="message", queue_name=queue, connection="ServiceBus", is_sessions_enabled=sessions or None
    )
    async def process_account_changes(message: func.ServiceBusMessage) -> None: ...

    assert served(on_bus(), sessions=sessions) == with_the_rest_by_hand(app, f"{queue}/$DeadLetterQueue")


def test_functions_take_what_service_bus_has_in_batches() -> None:
    app, queue = func.FunctionApp(), "account-changes"

    @app.service_bus_queue_trigger(
        arg_name="messages", queue_name=queue, connection="ServiceBus", cardinality=func.Cardinality.MANY
    )
    async def process_account_changes(messages: List[func.ServiceBusMessage]) -> None: ...  # noqa: UP006

    assert served(on_bus(), batches=True) == with_the_rest_by_hand(app, f"{queue}/$DeadLetterQueue")


def test_a_topic_is_read_by_the_subscription_of_the_application() -> None:
    app, topic = func.FunctionApp(), "account-changes"

    @app.service_bus_topic_trigger(
        arg_name="message", topic_name=topic, subscription_name="bank", connection="ServiceBus"
    )
    async def process_account_changes(message: func.ServiceBusMessage) -> None: ...

    dead_letters = f"{topic}/Subscriptions/bank/$DeadLetterQueue"
    assert served(on_bus(), subscription="bank") == with_the_rest_by_hand(app, dead_letters)


@pytest.mark.parametrize("batches", [False, True])
async def test_functions_hand_their_messages_to_the_application(batches: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    handed: list[tuple[object, ...]] = []
    for name in ("process", "process_batch", "settle", "call", "settle_call"):

        async def hand(_: ExactlyOnce, message: object, _name: str = name, **given: object) -> None:
            handed.append((_name, message, given))

        monkeypatch.setattr(ExactlyOnce, name, hand)
    entity, app = orders(), func.FunctionApp()
    to_orders = Destination("orders", receives=(Charged,), to="order")
    once = application(entity, destinations=(to_orders, PAYMENTS), storage=None, bus=BUS, transport="servicebus")
    once.serve_on(app, batches=batches)
    functions = {function.get_function_name(): function.get_user_function() for function in app.get_functions()}
    message = delivered(charged("c-1", 1))
    taken = [message] if batches else message
    await functions["process_orders"](taken)
    for name in ("settle_orders", "call_payments", "settle_payments"):
        await functions[name](message)
    more = {"queue": "orders"} if batches else {}
    assert handed == [
        ("process_batch" if batches else "process", taken, {"entity": entity, **more}),
        ("settle", message, {"entity": entity, "queue": "orders"}),
        ("call", message, {}),
        ("settle_call", message, {}),
    ]


def test_routes_and_other_functions_stay_the_authors_own() -> None:
    app = func.FunctionApp()

    @app.route("accounts/{account}", methods=["GET"])
    async def show(req: func.HttpRequest) -> str:
        return ""

    once = on_storage()
    once.sweep_on(app, "*/5 * * * * *")
    once.serve_on(app)
    functions = registered(app)
    assert {*functions} == {"show", "process_account_changes", "settle_account_changes", "exactlyonce_sweep"}
    assert functions["exactlyonce_sweep"]["bindings"][0]["schedule"] == "*/5 * * * * *"


def test_destinations_can_be_served_apart_each_with_its_options() -> None:
    app, other = func.FunctionApp(), Destination("others", to="account")
    once = application(accounts(), destinations=(TO_ACCOUNTS, other), storage=None, bus=BUS, transport="servicebus")
    once.serve_on(app, TO_ACCOUNTS, sessions=True)
    once.serve_on(app, other)
    functions = registered(app)
    assert [item for item, about in functions.items() if "isSessionsEnabled" in about["bindings"][0]] == [
        "process_account_changes"
    ]
    assert len(functions) == 5


def test_a_blueprint_is_served_as_an_app_is() -> None:
    blueprint, app = func.Blueprint(), func.FunctionApp()  # type: ignore[no-untyped-call]
    on_storage().serve_on(blueprint)
    app.register_functions(blueprint)
    assert registered(app) == served(on_storage())


@pytest.mark.parametrize("options", [{"sessions": True}, {"batches": True}, {"subscription": "s"}], ids=str)
def test_options_of_service_bus_are_refused_on_storage_queues(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="set EXACTLYONCE__transport to servicebus"):
        served(on_storage(), **options)


@pytest.mark.parametrize("vague", [Destination("changes"), Destination("changes", receives=(Deposit,))], ids=str)
def test_an_entity_to_which_a_destination_may_lead_is_refused_until_it_is_known(vague: Destination) -> None:
    once = application(accounts(), destinations=(vague,))
    with pytest.raises(ConfigurationError, match=r"entity 'account', and destination 'changes' does not say .* to="):
        served(once)


def test_an_entity_to_which_nothing_leads_takes_requests() -> None:
    assert {*served(application(accounts(), destinations=(AUDIENCE,)))} == {"exactlyonce_sweep"}


def test_a_read_model_to_which_nothing_leads_is_refused() -> None:
    board = Entity("board", state=Account, container="boards", partition_key="/key", strategy=Resequencer())
    with pytest.raises(ConfigurationError, match="leads to entity 'board', which takes no requests either"):
        served(application(board))


def test_a_destination_that_leads_elsewhere_cannot_be_served() -> None:
    with pytest.raises(ConfigurationError, match=r"'audience' leads to no entity of this application\. Give it to="):
        served(on_storage(), AUDIENCE)
    with pytest.raises(ConfigurationError, match="'other' is not of this application"):
        served(on_storage(), Destination("other"))


def test_two_destinations_that_come_by_one_queue_are_refused() -> None:
    other = Destination("others", to="account")
    once = application(accounts(), destinations=(TO_ACCOUNTS, other), mapping={"others": "account-changes"})
    with pytest.raises(ConfigurationError, match="'account-changes' and 'others' both come by queue 'account-changes'"):
        served(once)
    assert len(served(once, other)) == 3
