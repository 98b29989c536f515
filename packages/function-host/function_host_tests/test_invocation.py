"""Functions are called as the Python worker calls them."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

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


async def test_other_functions_run_in_as_many_threads_as_configured(invoker: Invoker) -> None:
    together = threading.Barrier(2)

    def work(value: str) -> str:
        together.wait()
        return threading.current_thread().name

    names = await asyncio.gather(*(invoker.invoke(function(work), "x") for _ in range(2)))

    assert len(set(names)) == 2
    assert all(str(name).startswith("function") for name in names)
    assert invoker.running_threads == 0


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
