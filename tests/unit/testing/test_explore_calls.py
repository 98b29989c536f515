"""Exploring calls to services: each gets its answer at any moment, or nobody knows what came of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from exactlyonce import ConfigurationError, Entity
from exactlyonce.testing import App, InvariantBroken, Request, Response, Seen, explore
from exactlyonce.testing.services import Trouble
from tests.calling import ORDERS, PAYMENTS, RECEIPTS, Bill, Billed, Order, orders

Explorable = tuple[App, Entity[Order]]


def application(service: Any) -> Explorable:
    entity = orders()
    apis = {} if service is None else {PAYMENTS: service}
    return App(entity, destinations=(ORDERS, RECEIPTS, PAYMENTS), queues={"orders": entity}, apis=apis), entity


def agreeing(request: Request) -> Response:
    return Response(201, request.body)


def test_without_a_fault_every_call_gets_its_answer_once() -> None:
    app, entity = application(agreeing)

    def paid(seen: Seen) -> None:
        assert seen.state(entity, "a") == Order(bills=1, paid=1)
        assert seen.outputs("receipts") == (Billed("a"),)

    explore(app, [(entity, Bill("a"))], in_the_end=paid, faults=0)
    assert app.tries(PAYMENTS) == ()


def test_whatever_happens_each_reply_is_handled_once() -> None:
    app, entity = application(agreeing)

    def at_most_once(seen: Seen) -> None:
        order = seen.state(entity, "a") or Order()
        assert order.paid + order.unknown <= order.bills <= 1

    def answered(seen: Seen) -> bool:
        order = seen.state(entity, "a")
        return order is not None and order.paid + order.unknown == 1

    explore(app, [(entity, Bill("a"))], at_most_once, in_the_end=answered, faults=2)


def test_an_unknown_outcome_is_a_fault_and_the_story_tells_of_it() -> None:
    app, entity = application(agreeing)

    with pytest.raises(InvariantBroken, match=r"publishes a call to payments \(and no final answer comes of it\)"):
        explore(app, [(entity, Bill("a"))], lambda seen: (seen.state(entity, "a") or Order()).unknown == 0)


@pytest.mark.parametrize("trouble", [Response(503), OSError()])
def test_a_service_without_a_final_answer_leaves_the_outcome_unknown(trouble: Response | OSError) -> None:
    def failing(request: Request) -> Response:
        if isinstance(trouble, OSError):
            raise trouble
        return trouble

    app, entity = application(failing)

    unknown = Order(bills=1, unknown=1)
    explore(app, [(entity, Bill("a"))], in_the_end=lambda seen: seen.state(entity, "a") == unknown, faults=0)


@pytest.mark.parametrize("trouble", ["lost", timedelta(seconds=20)])
def test_a_call_that_is_not_over_gets_its_answer_in_the_exploration(trouble: Trouble) -> None:
    app, entity = application(agreeing)
    app.trouble(PAYMENTS, trouble)
    app.send(entity, Bill("a"))

    explore(app, [], in_the_end=lambda seen: seen.state(entity, "a") == Order(bills=1, paid=1), faults=0)
    assert app.state(entity, "a") == Order(bills=1)
    app.advance(minutes=1)
    assert app.state(entity, "a") == Order(bills=1, paid=1)


def wrong(request: Request) -> Response:
    raise AssertionError("a wrong amount")


@pytest.mark.parametrize(
    ("service", "error", "told"),
    [
        (None, ConfigurationError, "'payments', and apis= of App has no function for it"),
        (wrong, AssertionError, "a wrong amount"),
    ],
    ids=["there is none", "it raises"],
)
def test_a_service_that_cannot_be_played_is_an_error_of_the_test(service: Any, error: Any, told: str) -> None:
    app, entity = application(service)
    with pytest.raises(error, match=told):
        explore(app, [(entity, Bill("a"))])


def test_a_reply_that_another_application_takes_is_not_delivered() -> None:
    entity = orders()
    app = App(entity, destinations=(ORDERS, RECEIPTS, PAYMENTS), apis={PAYMENTS: agreeing})

    def only_billed(seen: Seen) -> None:
        assert seen.state(entity, "a") == Order(bills=1)
        (call,) = seen.outputs(PAYMENTS.queue)
        assert call.tag == "a"

    explore(app, [(entity, Bill("a"))], in_the_end=only_billed, faults=0)
