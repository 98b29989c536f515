"""HTTP functions answer as under the real host."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import azure.functions as func
import pytest

from function_host import HostJson, HostOptions, SettingsError, function_host

ADDRESS = "http://127.0.0.1"


def make_app() -> func.FunctionApp:
    app = func.FunctionApp()

    @app.route(route="echo/{name}/{number:int}", methods=["POST"])
    async def echo(req: func.HttpRequest) -> func.HttpResponse:
        seen = [req.method, req.url, req.params["q"], req.route_params["name"], req.headers["X-TEST"], req.get_json()]
        return func.HttpResponse(repr(seen), status_code=201, headers={"X-Reply": "yes"})

    @app.route(route="text")
    def text(req: func.HttpRequest) -> str:
        return "grüße"

    @app.route(route="nothing")
    def nothing(req: func.HttpRequest): ...  # type: ignore[no-untyped-def]

    @app.route(route="json")
    def json(req: func.HttpRequest) -> func.HttpResponse:
        return func.HttpResponse("{}", mimetype="application/json")

    @app.route(route="broken")
    async def broken(req: func.HttpRequest) -> str:
        raise ValueError("inner detail")

    @app.route(route="wrong")
    async def wrong(req: func.HttpRequest):  # type: ignore[no-untyped-def]
        return 7

    return app


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with function_host(make_app(), {}) as host, aiohttp.ClientSession(host.http) as session:
        yield session


async def test_a_function_sees_the_whole_request_and_makes_the_whole_response(client: aiohttp.ClientSession) -> None:
    async with client.post("/api/echo/a%20b/7?q=1&q=2", json={"x": 1}, headers={"X-Test": "t"}) as reply:
        body = await reply.text()

    assert reply.status == 201
    assert reply.headers["X-Reply"] == "yes"
    assert body == repr(["POST", str(reply.url), "1,2", "a b", "t", {"x": 1}])


@pytest.mark.parametrize("path", ["/api/unknown", "/text", "/api/echo/a/7", "/api/echo/a/b", "/"])
async def test_what_matches_no_route_and_method_is_not_found(client: aiohttp.ClientSession, path: str) -> None:
    async with client.get(path) as reply:
        assert reply.status == 404


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PUT"])
async def test_a_method_that_the_route_does_not_list_is_not_found_be_it_head(method: str) -> None:
    app = func.FunctionApp()

    @app.route(route="listed", methods=["GET", "HEAD"])
    async def listed(req: func.HttpRequest) -> func.HttpResponse:
        return func.HttpResponse("text", headers={"X-Method": req.method})

    @app.route(route="unlisted", methods=["GET"])
    async def unlisted(req: func.HttpRequest) -> func.HttpResponse:
        return func.HttpResponse("text")

    async with function_host(app, {}) as host, aiohttp.ClientSession(host.http) as session:
        async with session.request(method, "/api/unlisted") as reply:
            assert reply.status == 404
        async with session.request(method, "/api/listed") as reply:
            seen = (reply.status, reply.headers.get("X-Method"), await reply.read())
    assert seen == ((200, "HEAD", b"") if method == "HEAD" else (404, None, b""))


@pytest.mark.parametrize("path", ["/api/broken", "/api/wrong", "/api/nothing"])
async def test_a_failure_shows_no_details_to_the_caller_but_is_logged(
    client: aiohttp.ClientSession, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with client.get(path) as reply:
        body = await reply.read()

    assert (reply.status, body) == (500, b"")
    assert caplog.messages == [f"{path.removeprefix('/api/')}: failed"]
    assert caplog.records[0].exc_info is not None


async def test_the_prefix_comes_from_host_json() -> None:
    host_json = HostJson.model_validate({"extensions": {"http": {"routePrefix": ""}}})
    async with (
        function_host(make_app(), {}, host_json=host_json) as host,
        aiohttp.ClientSession(host.http) as session,
        session.get("/text") as reply,
    ):
        assert reply.status == 200


async def test_the_host_listens_on_loopback_and_a_taken_port_is_reported() -> None:
    async with function_host(make_app(), {}) as host:
        address, _, port = host.http.rpartition(":")
        assert address == ADDRESS
        with pytest.raises(SettingsError, match=f"Port {port} cannot be had"):
            async with function_host(make_app(), {}, options=HostOptions(http_port=int(port))):
                pass


async def test_a_request_under_way_is_answered_before_the_host_ends() -> None:
    app, entered, finish = func.FunctionApp(), asyncio.Event(), asyncio.Event()

    @app.route(route="slow")
    async def slow(req: func.HttpRequest) -> str:
        entered.set()
        await finish.wait()
        return "done"

    async def ask(address: str) -> str:
        async with aiohttp.ClientSession(address) as session, session.get("/api/slow") as reply:
            return await reply.text()

    async with function_host(app, {}) as host:
        asking = asyncio.create_task(ask(host.http))
        await entered.wait()
        asyncio.get_running_loop().call_later(0.1, finish.set)  # By then the host is ending.

    assert await asking == "done"


async def test_a_timer_can_be_fired_by_hand() -> None:
    app, fired = func.FunctionApp(), list[bool]()

    @app.timer_trigger(arg_name="timer", schedule="0 0 0 1 1 *")
    def yearly(timer: func.TimerRequest) -> None:
        fired.append(timer.past_due)

    async with function_host(app, {}) as host:
        await host.fire_timer("yearly")
        await host.fire_timer("yearly", past_due=True)

    assert fired == [False, True]


async def test_a_timer_can_be_run_over_http_as_on_the_real_host() -> None:
    app, fired = func.FunctionApp(), asyncio.Event()

    @app.timer_trigger(arg_name="timer", schedule="0 0 0 1 1 *")
    async def yearly(timer: func.TimerRequest) -> None:
        fired.set()
        raise ValueError("nobody who asked is told")

    @app.route(route="text")
    def text(req: func.HttpRequest) -> str:
        return "text"

    async with function_host(app, {}) as host, aiohttp.ClientSession(host.http) as client:
        async with client.post("/admin/functions/yearly", json={}) as accepted:
            assert accepted.status == 202
        await fired.wait()
        for other in ("text", "nothing"):
            async with client.post(f"/admin/functions/{other}", json={}) as unknown:
                assert unknown.status == 404
        async with client.get("/admin/functions/yearly") as not_asked:
            assert not_asked.status == 404


async def test_a_timer_that_was_run_over_http_gets_the_grace_too() -> None:
    app, began, over = func.FunctionApp(), asyncio.Event(), list[str]()

    @app.timer_trigger(arg_name="timer", schedule="0 0 0 1 1 *")
    async def yearly(timer: func.TimerRequest) -> None:
        began.set()
        for _ in range(100):
            await asyncio.sleep(0)
        over.append("over")

    async with function_host(app, {}) as host, aiohttp.ClientSession(host.http) as client:
        reply = await client.post("/admin/functions/yearly", json={})
        assert reply.status == 202
        await began.wait()
    assert over == ["over"]


def test_an_invisibility_below_a_second_is_refused() -> None:
    with pytest.raises(SettingsError, match="at least 1 second"):
        HostOptions(invisible=0)


async def test_the_number_of_threads_must_be_a_number() -> None:
    with pytest.raises(SettingsError, match="PYTHON_THREADPOOL_THREAD_COUNT"):
        async with function_host(make_app(), {"PYTHON_THREADPOOL_THREAD_COUNT": "many"}):
            pass
