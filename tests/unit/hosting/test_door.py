"""The door: which reply a client gets, and that a retry gets the same one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import azure.functions as func
import pytest
from pydantic import BaseModel, Field

from exactlyonce import ConfigurationError, TryAgainLater, message
from exactlyonce.errors import (
    DamagedDocument,
    HandlerFailed,
    InvalidMessage,
    MessageFromTheFuture,
    TooOldToJudge,
    UniqueKeyTaken,
)
from exactlyonce.hosting.requests.asker import Asker
from exactlyonce.hosting.requests.door import Door, problem_of
from exactlyonce.stores.memory.store import Fate
from exactlyonce.testing.world import InstantClock
from tests.answering import Add
from tests.unit.fated import Fated
from tests.unit.hosting.desks import Desk, no_time, not_ready, told


@message("counter.strict")
class Strict(BaseModel):
    counter: str = "c"
    amount: int = Field(gt=0)


def uuid7(desk: Desk, ago: timedelta) -> str:
    milliseconds = round((desk.clock.now() - ago).timestamp() * 1000)
    return str(UUID(int=milliseconds << 80 | 7 << 76 | 0b10 << 62))


@pytest.mark.parametrize("status", [201, 409], ids=["it accepts", "it refuses"])
async def test_the_handlers_reply_is_the_response_and_a_retry_says_that_it_is_one(status: int) -> None:
    desk = Desk()
    first = await desk.post(message=Add("c", 2, status=status))
    assert (first.status_code, first.get_body(), first.mimetype) == (status, b'{"total":2}', "application/json")
    assert dict(first.headers) == {"Location": "/counters/c"}
    again = await desk.post(b" { } ", '"k-1"', message=Add("c", 2, status=status))
    assert (again.status_code, again.get_body(), again.mimetype) == (status, b'{"total":2}', "application/json")
    assert dict(again.headers) == {"Location": "/counters/c", "Idempotent-Replayed": "true"}
    assert await desk.total == 2


async def test_without_a_reply_there_is_no_content() -> None:
    response = await Desk().post(message=Add("c", silent=True))
    assert (response.status_code, response.get_body()) == (204, b"")


@pytest.mark.parametrize("key", [None, "", "\u00e9"])
async def test_a_key_that_is_missing_or_wrong_is_400(key: str | None) -> None:
    desk = Desk()
    assert told(await desk.post(key=key)) == (400, "Invalid key")
    assert await desk.total == 0


@pytest.mark.parametrize("differing", [{"body": b'{"amount":2}'}, {"path": "/api/counters/c/other"}])
async def test_another_request_with_the_same_key_is_422(differing: dict[str, Any]) -> None:
    desk = Desk()
    await desk.post()
    assert told(await desk.post(**differing)) == (422, "Key reused")
    assert await desk.total == 1


async def test_a_retry_across_a_deploy_that_changed_a_default_gets_its_answer() -> None:
    desk = Desk()
    first = await desk.post(message=Add("c"))
    desk.restart()
    again = await desk.post(message=Add("c", amount=7, status=202))
    assert (again.status_code, again.get_body()) == (first.status_code, first.get_body())
    assert again.headers["Idempotent-Replayed"] == "true"
    assert await desk.total == 1


async def test_callers_do_not_share_keys() -> None:
    desk = Desk()
    await desk.post(b'{"by":"nobody"}')
    await desk.post(b'{"by":"a"}', x_ms_client_principal_id="a")
    await desk.post(b'{"by":"b"}', x_ms_client_principal_id="b")
    same = await desk.post(b'{"by":"b"}', scope="b")
    assert same.headers["Idempotent-Replayed"] == "true"
    assert await desk.total == 3


JSON = ["", "application/json", "Application/JSON; charset=utf-8", "application/a+json"]


@pytest.mark.parametrize("media_type", ["text/plain", "application/xml", "multipart/form-data; boundary=a", *JSON])
async def test_a_body_that_is_not_json_is_415(media_type: str) -> None:
    desk = Desk()
    response = await desk.post(Content_Type=media_type)
    if media_type in JSON:
        assert response.status_code == 200
    else:
        assert told(response) == (415, "Unsupported media type")
    assert await desk.total == (media_type in JSON)


@pytest.mark.parametrize("encoding", ["gzip", "br", "identity, gzip", "x"])
async def test_a_compressed_body_is_415_since_a_retry_would_look_like_another_request(encoding: str) -> None:
    response = await Desk().post(Content_Encoding=encoding)
    assert told(response) == (415, "Unsupported content encoding")
    assert response.headers["Accept-Encoding"] == "identity"
    assert (await Desk().post(Content_Encoding="Identity")).status_code == 200


@pytest.mark.parametrize("caller", ["x" * 2_000, "a\nb", "Jos\u00e9", "\udcff"])
async def test_a_caller_of_any_name_has_keys_of_its_own(caller: str) -> None:
    desk = Desk()
    await desk.post(x_ms_client_principal_id=caller)
    again = await desk.post(x_ms_client_principal_id=caller)
    assert again.headers["Idempotent-Replayed"] == "true"
    await desk.post(x_ms_client_principal_id=f"{caller}x")
    assert await desk.total == 2


async def test_a_key_for_two_entities_means_two_requests() -> None:
    desk = Desk()
    assert (await desk.post(b'{"to":"c"}')).status_code == 200
    assert told(await desk.post(b'{"to":"d"}')) == (422, "Key reused")
    assert (await desk.post(b'{"to":"d"}', message=Add("d"))).status_code == 200


async def test_a_request_without_a_body_needs_no_media_type() -> None:
    assert (await Desk().post(b"", Content_Type="text/plain")).status_code == 200


async def test_a_body_that_does_not_fit_its_message_is_400_without_its_values() -> None:
    desk = Desk()
    response = await desk.post(message=lambda: Strict.model_validate({"amount": "secret"}))
    assert told(response) == (400, "Invalid request")
    assert b"amount" in response.get_body()
    assert b"secret" not in response.get_body()
    assert (await desk.post(message=lambda: Add("c"))).status_code == 200  # Nothing was kept of the first.


@message("counter.weigh")
class Weighed(BaseModel):
    counter: str = "c"
    grams: float


async def test_a_message_that_no_json_can_be_is_400_at_both_doors() -> None:
    desk = Desk()
    for response in (
        await desk.post(b'{"grams":"NaN"}', message=Weighed.model_validate),
        await desk.open(lambda: Weighed(grams=float("inf"))),
    ):
        assert told(response) == (400, "Invalid request")
    assert desk.left() == set()


async def test_a_function_whose_parameters_nobody_knows_is_called_without_arguments() -> None:
    with pytest.raises(ConfigurationError, match="returned a dict"):
        await Desk().post(message=dict)


async def later(content: Any) -> Add:
    return Add("c")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("maker", "says"),
    [
        (Weighed, "is the class Weighed. Give a message, or a function"),
        (later, "returned a coroutine. Let it be a plain function"),
        (lambda: None, "returned None"),
        (lambda: Weighed, "returned the class Weighed"),
    ],
)
async def test_a_function_that_makes_no_message_is_the_operators_mistake(maker: Any, says: str) -> None:
    desk = Desk()
    for door in (desk.post, desk.open):
        with pytest.raises(ConfigurationError, match=says):
            await door(message=maker)
    assert desk.left() == set()


async def test_an_address_that_none_can_be_is_400() -> None:
    desk = Desk()
    request = func.HttpRequest("POST", "http://[/api", headers={"Idempotency-Key": "k-1"}, body=b"{}")
    response = await Door(desk.asker).answer(request, desk.counters, Add("c"), None, "any")
    assert told(response) == (400, "Invalid request")


async def test_an_outcome_that_is_not_known_is_503_and_a_retry_gets_the_answer() -> None:
    desk = Desk(Fated(Fate.LOST_AFTER, "save_entity", times=1), tries=1)
    response = await desk.post()
    assert told(response) == (503, "Outcome not known")
    assert response.headers["Retry-After"] == "1"
    again = await desk.post()
    assert (again.get_body(), again.headers["Idempotent-Replayed"]) == (b'{"total":1}', "true")
    assert await desk.total == 1


async def test_keys_that_carry_their_time_are_never_applied_twice() -> None:
    clock = InstantClock()
    desk = Desk(clock=clock)
    known, unknown = uuid7(desk, timedelta(0)), uuid7(desk, timedelta(seconds=1))
    assert (await desk.post(key=known, keys="uuid7")).status_code == 200
    clock.advance(timedelta(days=29).total_seconds())
    assert (await desk.post(key=known, keys="uuid7")).headers["Idempotent-Replayed"] == "true"
    assert told(await desk.post(key=unknown, keys="uuid7")) == (400, "Key expired")
    assert told(await desk.post(key="k-1", keys="uuid7")) == (400, "Invalid key")
    assert told(await desk.post(key=uuid7(desk, timedelta(minutes=-6)), keys="uuid7")) == (400, "Invalid key")
    assert await desk.total == 1


async def test_a_key_that_carries_its_time_is_judged_by_it_though_any_key_is_taken() -> None:
    """The time is a function of the key. So a retry is judged alike, whatever keys the application takes by then."""
    clock = InstantClock()
    desk = Desk(clock=clock)
    assert told(await desk.post(key=uuid7(desk, timedelta(days=400)))) == (400, "Key expired")
    assert told(await desk.post(key=uuid7(desk, timedelta(days=-2)))) == (400, "Clock error")
    early = uuid7(desk, timedelta(minutes=-6))
    assert (await desk.post(key=early)).status_code == 200
    clock.advance(timedelta(minutes=6).total_seconds())
    assert (await desk.post(key=early, keys="uuid7")).headers["Idempotent-Replayed"] == "true"
    assert await desk.total == 1


async def test_an_error_of_the_operator_is_not_told_to_clients() -> None:
    desk = Desk()
    with pytest.raises(ConfigurationError):
        await desk.post(message=lambda: _raised(ConfigurationError("the setting")))


def _raised(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (TooOldToJudge("secret"), 400),
        (MessageFromTheFuture("secret"), 400),
        (InvalidMessage("secret"), 400),
        (UniqueKeyTaken("secret"), 409),
        (HandlerFailed("secret"), 500),
        (DamagedDocument("secret"), 500),
        (TryAgainLater("secret"), 503),
    ],
)
def test_problems_do_not_quote_errors(error: Any, status: int) -> None:
    problem = problem_of(error)
    assert problem.status == status
    assert "secret" not in problem.title + problem.detail
    assert (problem.retry_after is not None) == (status == 503)


async def test_the_time_of_a_key_is_judged_once_the_application_is_ready() -> None:
    desk = Desk()
    desk.asker = Asker(desk.receiver, not_ready, no_time)
    response = await desk.post(key=uuid7(desk, timedelta(0)), keys="uuid7")
    assert response.status_code == 503
