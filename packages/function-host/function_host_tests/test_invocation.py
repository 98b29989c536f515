"""Functions are called as the Python worker calls them."""

import asyncio
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

import azure.functions as func
import pytest

from function_host.functions import Function, HttpTrigger, TimerTrigger
from function_host.invocation import FunctionCancelledError, Invoker
from function_host.routes import Route
from function_host.schedule import Schedule


@pytest.fixture
def invoker() -> Iterator[Invoker]:
    made = Invoker(threads=2)
    yield made
    made.close()


def function(call: Callable[..., Any], *, takes_context: bool = False) -> Function:
    return Function("work", "value", call, takes_context, HttpTrigger(Route.parse("work"), frozenset()))


async def test_async_functions_run_on_the_event_loop(invoker: Invoker) -> None:
    async def work(value: str) -> tuple[str, int]:
        return value, threading.get_ident()

    assert await invoker.invoke(function(work), "x") == ("x", threading.get_ident())


async def test_other_functions_run_in_as_many_threads_as_configured(invoker: Invoker) -> None:
    together = threading.Barrier(2)

    def work(value: str) -> str:
        together.wait()
        return threading.current_thread().name

    names = await asyncio.gather(*(invoker.invoke(function(work), "x") for _ in range(2)))

    assert len(set(names)) == 2
    assert all(str(name).startswith("function") for name in names)
    assert invoker.running_threads == 0


async def test_the_context_names_the_function_and_the_invocation(invoker: Invoker) -> None:
    async def work(value: str, context: func.Context) -> tuple[str, str]:
        return context.function_name, context.invocation_id

    first = await invoker.invoke(function(work, takes_context=True), "x")
    second = await invoker.invoke(function(work, takes_context=True), "x")

    assert isinstance(first, tuple)
    assert first[0] == "work"
    assert first != second


async def test_a_thread_of_a_function_knows_its_invocation(invoker: Invoker) -> None:
    def work(value: str, context: func.Context) -> tuple[str, str]:
        local: Any = context.thread_local_storage
        of_the_pool = local.invocation_id
        of_a_thread = []

        def log() -> None:
            local.invocation_id = context.invocation_id
            of_a_thread.append(local.invocation_id)

        thread = threading.Thread(target=log)
        thread.start()
        thread.join()
        assert of_a_thread == [context.invocation_id]
        return of_the_pool, context.invocation_id

    known, own = cast("tuple[str, str]", await invoker.invoke(function(work, takes_context=True), "x"))
    assert known == own


async def test_the_context_has_a_trace_and_no_retries(invoker: Invoker) -> None:
    async def work(value: str, context: func.Context) -> tuple[str, int, int]:
        retries = context.retry_context
        return context.trace_context.trace_parent, retries.retry_count, retries.max_retry_count

    found = cast("tuple[str, int, int]", await invoker.invoke(function(work, takes_context=True), "x"))
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-00", found[0])
    assert found[1:] == (0, 0)


@pytest.mark.parametrize("result", [7, "", False])
async def test_what_a_function_without_an_output_returns_is_a_failure(invoker: Invoker, result: object) -> None:
    async def work(value: str) -> object:
        return result

    timed = Function("work", "value", work, takes_context=False, trigger=TimerTrigger(Schedule("0 * * * * *"), False))
    with pytest.raises(RuntimeError, match=r"^function 'work' without a \$return binding returned a non-None value$"):
        await invoker.invoke(timed, "x")


async def test_a_function_that_cancels_itself_has_failed(invoker: Invoker) -> None:
    async def work(value: str) -> None:
        raise asyncio.CancelledError

    with pytest.raises(FunctionCancelledError):
        await invoker.invoke(function(work), "x")


async def test_cancelling_an_invocation_cancels_the_function(invoker: Invoker) -> None:
    started = asyncio.Event()
    seen: list[str] = []

    async def work(value: str) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            seen.append("ended")

    task = asyncio.create_task(invoker.invoke(function(work), "x"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert seen == ["ended"]
