"""Whatever is sent to a door: the right answer or problem+json, twice the same, and never carried out twice."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import azure.functions as func
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from pydantic import BaseModel

from exactlyonce import Context, Entity, Outbox, message
from exactlyonce.hosting.requests import door, opened_door
from exactlyonce.testing import App


@message("till.pay")
class Pay(BaseModel):
    amount: Decimal
    note: str = ""


class Till(BaseModel):
    total: Decimal = Decimal(0)


@message("till.paid")
class Paid(BaseModel):
    total: Decimal


tills = Entity("till", state=Till, container="tills", strategy=Outbox())


@tills.handles(Pay, key=lambda pay: "t")
def pay(state: Till, given: Pay, context: Context) -> Till:
    if given.note != "silent":
        context.reply(Paid(total=state.total + given.amount))
    return Till(total=state.total + given.amount)


MAKERS: dict[str, Callable[[func.HttpRequest], Any]] = {
    "get_json": lambda request: lambda: Pay(**request.get_json()),
    "a property": lambda request: lambda: Pay(amount=request.get_json()["amount"]),
    "Decimal": lambda request: lambda: Pay(amount=Decimal(str(request.get_json().get("amount")))),
    "validate_json": lambda request: lambda: Pay.model_validate_json(request.get_body()),
    "content": lambda request: lambda content: Pay(**content),
    "validate": lambda request: Pay.model_validate,
    "message": lambda request: Pay(amount=Decimal(1)),
}
NUMBERS = st.from_regex(r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["amount", "note", "x"]), inner, max_size=3)
    ),
    max_leaves=4,
)
FINE = st.one_of(
    st.sampled_from(
        ['{"amount":1}', '{"amount":"2.50","note":"silent"}', '{"amount":"NaN"}', '{"amount":"1","amount":"2"}']
    ),
    NUMBERS.map(lambda digits: f'{{"amount":{digits}}}'),
    VALUES.map(json.dumps),
).map(str.encode)


def mostly(usual: st.SearchStrategy[Any], odd: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Odd in one case of six, so that requests with several odd parts do not crowd out those that are carried out."""
    return st.integers(0, 5).flatmap(lambda drawn: usual if drawn else odd)


BODIES = mostly(
    FINE,
    st.one_of(
        st.binary(max_size=20),
        FINE.map(lambda body: body[:-1]),
        FINE.map(lambda body: b"\xef\xbb\xbf" + body),
        FINE.map(lambda body: body.decode().encode("utf-16")),
        FINE.map(gzip.compress),
        st.sampled_from([b"", b"[" * 5_000, b'{"amount":' + b"9" * 5_000 + b"}", b'{"note":"\\ud800","amount":1}']),
    ),
)
ODD = st.text(st.characters(), max_size=5) | st.sampled_from(["x" * 2_000, "a\r\nb", "\udcff", "a,b", "é", '"k"', '"'])
HEADERS = st.fixed_dictionaries(
    {
        "Idempotency-Key": mostly(st.sampled_from(["k-1", '"k-1"']), ODD),
        "Content-Type": mostly(
            st.sampled_from(["application/json", "text/json", "a/b+json"]), st.just("text/plain") | ODD
        ),
        "Content-Encoding": mostly(st.sampled_from(["", "Identity , identity"]), st.just("br, gzip") | ODD),
        "x-ms-client-principal-id": st.just("") | ODD,
    }
)
METHODS = mostly(
    st.sampled_from(["POST", "POST", "PUT", "patch", "DELETE"]),
    st.sampled_from(["GET", "HEAD", "OPTIONS", "TRACE", "", "é"]),
)
OPENING = mostly(st.just("POST"), METHODS)
SERVING = st.lists(st.sampled_from(["POST", "POST", "GET", "HEAD", "DELETE", "get", "OPTIONS", "PUT", ""]), max_size=6)


def asked(method: str, url: str, headers: dict[str, str], body: bytes, id: str | None = None) -> func.HttpRequest:
    return func.HttpRequest(
        method,
        f"http://h{url}",
        headers=headers,
        params=dict(parse_qsl(urlsplit(url).query)),
        route_params={} if id is None else {"request": id},
        body=body,
    )


def require_told(response: func.HttpResponse, allowed: tuple[str, ...]) -> None:
    """A problem says what it is."""
    if response.status_code < 300:
        return
    assert response.status_code in (400, 404, 405, 409, 415, 422)
    assert response.mimetype == "application/problem+json"
    assert response.headers.get("Allow") == (", ".join(allowed) if response.status_code == 405 else None)
    assert json.loads(response.get_body())["status"] == response.status_code


def seen(response: func.HttpResponse) -> tuple[int, bytes]:
    return response.status_code, response.get_body()


def amount_of(body: bytes, maker: str) -> Decimal:
    sent = 1 if maker == "message" else json.loads(body, parse_float=str, parse_int=str)["amount"]
    return Decimal(0) + Decimal(sent)  # As the handler adds it, with 28 digits.


@given(METHODS, BODIES, HEADERS, st.sampled_from(sorted(MAKERS)))
def test_whatever_is_asked_is_answered_alike_and_carried_out_once(
    method: str, body: bytes, headers: dict[str, str], maker: str
) -> None:
    app = App(tills)
    responses = []
    for _ in range(2):
        request = asked(method, "/api/pay", headers, body)
        responses.append(app.run(app.once.answer(request, tills, MAKERS[maker](request))))
    first, again = responses
    event(f"answered {first.status_code}")
    require_told(first, door.METHODS)
    assert seen(first) == seen(again)
    assert (first.status_code == 405) == (method.upper() not in door.METHODS)
    state = app.state(tills, "t")
    if first.status_code < 300:
        assert again.headers["Idempotent-Replayed"] == "true"
        assert state is not None
        assert state.total == amount_of(body.removeprefix(b"\xef\xbb\xbf"), maker)
    else:
        assert state is None


@given(OPENING, BODIES, HEADERS, st.sampled_from(sorted(MAKERS)), SERVING)
def test_whatever_is_opened_and_served_is_carried_out_once(
    method: str, body: bytes, headers: dict[str, str], maker: str, methods: list[str]
) -> None:
    app = App(tills)
    request = asked(method, "/api/pays/é x", headers, body)
    response = app.run(app.once.open_request(request, tills, MAKERS[maker](request)))
    require_told(response, ("POST",))
    event(f"opened {response.status_code}")
    if response.status_code != 201:
        assert app.state(tills, "t") is None
        return
    place = response.headers["Location"]
    assert place.isascii()
    id = urlsplit(place).path.rpartition("/")[2]
    is_done, is_closed = False, False
    for item in methods:
        served = app.run(app.once.serve_request(asked(item, place, headers, body, id), tills, "t"))
        if item == "HEAD":
            got = app.run(app.once.serve_request(asked("GET", place, headers, body, id), tills, "t"))
            assert (served.status_code, served.get_body()) == (got.status_code, b"")
            assert (dict(served.headers), served.mimetype) == (dict(got.headers), got.mimetype)
            continue
        require_told(served, opened_door.METHODS)
        assert (served.status_code == 405) == (item.upper() not in opened_door.METHODS)
        is_done = is_done or (item == "POST" and not is_closed)
        is_closed = is_closed or item == "DELETE"
    state = app.state(tills, "t")
    assert (state is not None) == is_done
    if state is not None:
        assert state.total == amount_of(body.removeprefix(b"\xef\xbb\xbf"), maker)


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("digits", ["99999999999999.99", "0.10000000000000001", "1234567890123456789.0"])
def test_an_amount_keeps_its_digits_or_its_place_is_named(digits: str, maker: str) -> None:
    app = App(tills)
    request = asked("POST", "/api/pay", {"Idempotency-Key": "k"}, f'{{"amount":{digits}}}'.encode())
    response = app.run(app.once.answer(request, tills, MAKERS[maker](request)))
    if maker in ("content", "validate"):
        assert app.state(tills, "t") == Till(total=Decimal(digits))
    else:
        assert response.status_code == 400
        assert "amount: This number has more digits than a double keeps." in response.get_body().decode()
        assert digits not in response.get_body().decode()
