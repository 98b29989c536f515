"""Calls as handlers make them: what an Api may be, which paths stay within it, and what is refused at once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from exactlyonce import Api, ConfigurationError, Context, Destination, Reply
from exactlyonce.effects.attempt import Before, Handled
from exactlyonce.errors import HandlerFailed, OutputTooLarge, UnknownDestination
from exactlyonce.handling.calls import MOST_TAG
from exactlyonce.handling.routes import Routes
from exactlyonce.handling.runner import Runner
from exactlyonce.testing import run
from exactlyonce.testing.determinism import NonDeterministic, assert_deterministic
from tests.calling import ORDERS, PAYMENTS, Bill, Charge, Charged, Order, bill, orders
from tests.unit.script import AT

HOUR = timedelta(hours=1)


def api(**given: Any) -> Api:
    return Api(**{"name": "payments", "base": "https://pay.example", "key_lifetime": HOUR, **given})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"base": "pay.example"}, "base= is an address"),
        ({"base": "ftp://pay.example"}, "base= is an address"),
        ({"base": "https://"}, "base= is an address"),
        ({"base": "https://pay.example?key=secret"}, "base= is an address"),
        ({"base": "https://pay.example#a"}, "base= is an address"),
        ({"timeout": timedelta(0)}, "timeout= has to be positive"),
        ({"clock_tolerance": timedelta(seconds=-1)}, "clock_tolerance= not negative"),
        ({"key_lifetime": timedelta(seconds=90)}, "longer than timeout= and clock_tolerance= together, 0:01:30"),
        ({"most_at_once": 0}, "most_at_once= has to be at least 1"),
        ({"most_bytes": -1}, "most_bytes= not negative"),
        ({"key_header": "a b"}, "names of headers"),
        ({"headers": ("X-A", "")}, "headers= of Api 'payments' is an empty string"),
    ],
    ids=str,
)
def test_an_api_that_cannot_be_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says) as refused:
        api(**given)
    assert "secret" not in str(refused.value)


def test_the_least_that_an_api_may_have() -> None:
    assert (
        api(base="http://localhost:8080/", clock_tolerance=timedelta(0), most_at_once=1, most_bytes=0).most_at_once == 1
    )
    shortest = timedelta(seconds=90, microseconds=1)
    assert api(key_lifetime=shortest).last_start(AT, shortest) == AT + timedelta(microseconds=1)


@pytest.mark.parametrize(("declared", "said"), [(HOUR, HOUR), (HOUR, 2 * HOUR), (2 * HOUR, HOUR)])
def test_the_last_try_goes_by_the_shorter_lifetime_of_the_key(declared: timedelta, said: timedelta) -> None:
    assert api(key_lifetime=declared).last_start(AT, said) == AT + HOUR - timedelta(seconds=90)


def test_credentials_are_not_shown() -> None:
    assert "credentials" not in repr(api(credentials=lambda: {"Authorization": "secret"}))


@pytest.mark.parametrize("path", ["/", "/charges", "/a/b?c=d&e=%20f", "/a.b/..c", "/%7Ea?x=../y"])
def test_paths_within_the_base(path: str) -> None:
    assert api(base="https://pay.example/v1/").address(path) == f"https://pay.example/v1{path}"


DOTS = ("/a/../b", "/..", "/.", "/%2e%2e/a", "/a%2f..%2fb", "/a\\b", "/%5c..")
HOSTS = ("//evil.example/", "https://evil.example/", "@evil.example/")


@pytest.mark.parametrize("path", [*DOTS, *HOSTS, "", "charges", "/a b", "/a#b", "/é", "/a\n"])
def test_paths_that_could_leave_the_base(path: str) -> None:
    with pytest.raises(ValueError, match="A path of payments begins with one /"):
        api().address(path)


def calling(*arguments: Any, **more: Any) -> Callable[[Order, Bill, Context], Order]:
    def handler(state: Order, given: Bill, context: Context) -> Order:
        context.call(*arguments, **{"then": Charged, **more})
        return state

    return handler


def test_a_test_of_a_handler_sees_its_calls() -> None:
    ran = run(calling(PAYMENTS, "POST", "/charges?a=b", Charge(3), tag="o-1"), Order(), Bill("o-1"))
    (call,) = ran.calls
    assert (call.api, call.method, call.path, call.body, call.then) == (
        "payments",
        "POST",
        "/charges?a=b",
        {"amount": 3},
        "order.charged",
    )
    assert (call.tag, call.version, call.replies) == ("o-1", 1, "order.charged")
    assert not ran.sent
    (bare,) = run(calling(PAYMENTS, "GET", "/rates"), Order(), Bill("o-1")).calls
    assert (bare.body, bare.tag) == (None, "")
    assert run(calling(PAYMENTS, "GET", "/", tag="x" * MOST_TAG), Order(), Bill("o-1")).calls


class Unnamed(Reply):
    pass


@pytest.mark.parametrize(
    ("arguments", "more", "error"),
    [
        ((PAYMENTS, "post", "/charges"), {}, ValueError),
        ((PAYMENTS, "CONNECT", "/charges"), {}, ValueError),
        ((PAYMENTS, "POST", "charges"), {}, ValueError),
        ((PAYMENTS, "POST", "/charges"), {"tag": "x" * (MOST_TAG + 1)}, ValueError),
        ((PAYMENTS, "POST", "/charges"), {"tag": "\x7f"}, ValueError),
        ((PAYMENTS, "POST", "/charges", {"amount": 1}), {}, ConfigurationError),
        ((PAYMENTS, "POST", "/charges"), {"then": Bill}, ConfigurationError),
        ((PAYMENTS, "POST", "/charges"), {"then": Unnamed}, ConfigurationError),
    ],
    ids=str,
)
def test_a_call_that_cannot_be_fails_its_handler(arguments: Any, more: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        run(calling(*arguments, **more), Order(), Bill("o-1"))


ROUTES = Routes.to((ORDERS,), {"orders": 1_000, "payments": 1_000})


def handled(routes: Routes = ROUTES, version: int | None = 4, **more: Any) -> Handled:
    entity = orders()
    return Runner(entity, entity.ref("a"), routes)(Before(None, AT, "tx-1", version=version), bill("m-1", **more))


def test_calls_are_outputs_whose_ids_the_commit_is_told() -> None:
    result = handled(times=2)
    assert result.calls == tuple(output.id for output in result.outputs)
    assert [output.destination for output in result.outputs] == ["payments", "payments"]


def test_the_library_s_own_errors_pass_with_the_name_of_the_message() -> None:
    with pytest.raises(
        ConfigurationError, match=r"Message web/m-1 on entity order/a: Only entities with the strategy Outbox"
    ):
        handled(version=None)
    with pytest.raises(OutputTooLarge):
        handled(path="/" + "x" * 1_000)
    with pytest.raises(HandlerFailed, match="ValueError"):
        handled(path="//evil.example")
    with pytest.raises(UnknownDestination, match="no destination 'payments'"):
        handled(Routes.to((ORDERS,), {"orders": 1_000}))


@pytest.mark.parametrize("destinations", [(), (ORDERS, Destination("others", receives=(Charged,)))], ids=len)
def test_replies_go_to_exactly_one_destination(destinations: tuple[Destination, ...]) -> None:
    limits = {"orders": 1_000, "others": 1_000, "payments": 1_000}
    with pytest.raises(ConfigurationError, match=rf"this application has {len(destinations)}\."):
        handled(Routes.to(destinations, limits))


def test_a_handler_that_calls_is_judged_deterministic_by_its_calls() -> None:
    assert_deterministic(calling(PAYMENTS, "POST", "/charges", Charge(1)), Order(), Bill("o-1"))
    amounts = iter(range(9))

    def changing(state: Order, given: Bill, context: Context) -> Order:
        context.call(PAYMENTS, "POST", "/charges", Charge(next(amounts)), then=Charged)
        return state

    with pytest.raises(NonDeterministic, match="call 1"):
        assert_deterministic(changing, Order(), Bill("o-1"))


@pytest.mark.parametrize(("status", "ok"), [(None, False), (199, False), (200, True), (299, True), (300, False)])
def test_a_reply_is_ok_where_the_call_was_carried_out(*, status: int | None, ok: bool) -> None:
    assert Charged(tag="a", outcome="answered", status=status).ok is ok
