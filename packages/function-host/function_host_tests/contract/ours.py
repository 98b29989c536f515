"""The engine of this package."""

from __future__ import annotations

import importlib.util
import itertools
from contextlib import AsyncExitStack
from datetime import datetime
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import aiohttp

from function_host.app_settings import AppSettings
from function_host.functions import Function, ServiceBusTrigger
from function_host.host_json import QueueOptions
from function_host.http_server import HttpServer
from function_host.invocation import Invoker
from function_host.loading import describe_functions, find_app
from function_host.message_processor import MessageProcessor
from function_host.service_bus.values import value_of, values_of
from function_host.storage_queue import Delivery
from function_host.timer_listener import TimerListener
from function_host_tests.broker import NOON, delivered
from function_host_tests.contract.port import MESSAGE, Outcome
from function_host_tests.fakes import FakeQueue, encoded, wait_for_the_end

_SETTINGS = {
    "AzureWebJobsStorage": "UseDevelopmentStorage=true",
    "Bus__fullyQualifiedNamespace": "a.servicebus.windows.net",
}
_numbers = itertools.count()


class OwnEngine:
    """Functions are called as the host of this package calls them, with brokers that are not there."""

    def __init__(self) -> None:
        self._module = _loaded()
        self._functions = {
            function.name: function for function in describe_functions(find_app(self._module), AppSettings(_SETTINGS))
        }
        self._invoker = Invoker()
        self._server = HttpServer(self._functions.values(), "api", self._invoker.invoke, lambda _: False, grace=1)
        self._open = AsyncExitStack()

    async def __aenter__(self) -> OwnEngine:
        address = await self._server.open(0)
        self._client = await self._open.enter_async_context(aiohttp.ClientSession(address))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()
        await self._server.close()
        self._invoker.close()

    async def queue(self, function: str, text: str) -> Outcome:
        queue = FakeQueue()
        processor = MessageProcessor(
            name=function,
            call=self._call(function),
            queue=queue,
            poison=None,
            options=QueueOptions(),
            invisible=600,
            wait=wait_for_the_end,
            checkpoint=lambda _: None,
        )
        times = (
            datetime.fromisoformat(str(MESSAGE[name]))
            for name in ("InsertionTime", "ExpirationTime", "NextVisibleTime")
        )
        inserted, expires, visible = times
        known = Delivery("id-1", encoded(text), 3, inserted, expires, visible, pop_receipt="receipt-1")
        await processor.process(known)
        return self._outcome(ok=any(step[0] == "delete" for step in queue.log))

    async def bus(self, function: str, *messages: dict[str, Any]) -> Outcome:
        known = [
            delivered(message["body"], **{name: what for name, what in message.items() if name != "body"})
            for message in messages
        ]
        trigger = self._functions[function].trigger
        assert isinstance(trigger, ServiceBusTrigger)
        value = values_of(known, binary=False) if trigger.many else value_of(known[0], binary=False)
        return await self._tried(function, value)

    async def timer(self, *, past_due: bool) -> Outcome:
        trigger: Any = self._functions["timer"].trigger
        await TimerListener("timer", trigger, self._call("timer"), lambda: NOON, wait_for_the_end).fire(
            past_due=past_due
        )
        return self._outcome(ok=bool(self._module.seen))

    async def http(self, function: str, method: str, path: str, body: str = "", **headers: str) -> Outcome:
        del function  # Its route finds it.
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self._client.request(method, f"/api/{path}", data=body.encode() or None, headers=given) as reply:
            text = await reply.text()
            known = {name.lower(): value for name, value in reply.headers.items()}
            return self._outcome(ok=reply.status != 500, status=reply.status, headers=known, body=text)

    def _call(self, function: str) -> Any:
        return partial(self._invoker.invoke, self._functions[function])

    async def _tried(self, function: str, value: object) -> Outcome:
        called: Function = self._functions[function]
        try:
            await self._invoker.invoke(called, value)
        except Exception:  # Whatever a function raises is its failure.
            return self._outcome(ok=False)
        return self._outcome(ok=True)

    def _outcome(self, *, ok: bool, **reply: Any) -> Outcome:
        seen = list(self._module.seen)
        self._module.seen.clear()
        return Outcome(ok, seen[0] if seen else None, **reply)


def _loaded() -> ModuleType:
    """The app, as a new module each time: its functions can be read only once."""
    place = Path(__file__).with_name("function_app.py")
    spec = importlib.util.spec_from_file_location(f"contract_app_{next(_numbers)}", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
