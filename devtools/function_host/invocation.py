"""Calling a function, as the Python worker does: async ones on the event loop, the others in a pool of threads.

Here the loop also carries the listeners: an async function that blocks delays the renewal of messages too, whereas the
real host renews in a process of its own.
"""

import asyncio
import threading
import uuid
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import azure.functions as func

from .functions import CONTEXT_PARAMETER, Function


class FunctionCancelledError(Exception):
    """The function ended with a cancellation of its own; a failure like any other."""


class InvocationContext(func.Context):
    """The `context` argument; without tracing and retries, which this host does not have."""

    def __init__(self, function_name: str) -> None:
        self._function_name = function_name
        self._invocation_id = str(uuid.uuid4())
        self._local = threading.local

    @property
    def invocation_id(self) -> str:
        """A new id for each invocation."""
        return self._invocation_id

    @property
    def thread_local_storage(self) -> type[threading.local]:
        """Storage of the thread that runs a function of the pool."""
        return self._local

    @property
    def function_name(self) -> str:
        """Name of the function."""
        return self._function_name

    @property
    def function_directory(self) -> str:
        """Empty: in the v2 programming model functions have no directory."""
        return ""

    @property
    def trace_context(self) -> None:  # type: ignore[override]
        """None: no tracing here."""
        return None

    @property
    def retry_context(self) -> None:  # type: ignore[override]
        """None: no retry policies here."""
        return None


class Invoker:
    """Runs functions.

    Args:
        threads: size of the pool (`PYTHON_THREADPOOL_THREAD_COUNT`); None is Python's default, min(32, processors + 4).
    """

    def __init__(self, threads: int | None = None) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="function")
        self._in_threads: set[Future[object]] = set()

    @property
    def running_threads(self) -> int:
        """Functions that run in threads now; nothing can end these before they end."""
        return len(self._in_threads)

    async def invoke(self, function: Function, value: object) -> object:
        """Call a function with its trigger's value and return what it returns.

        Raises:
            FunctionCancelledError: it was cancelled from within.
            Exception: whatever it raises.
        """
        arguments: dict[str, object] = {function.argument: value}
        if function.takes_context:
            arguments[CONTEXT_PARAMETER] = InvocationContext(function.name)
        if function.is_async:
            return await _settle(function.call(**arguments))
        return await _settle(self._in_pool(function, arguments))

    def close(self) -> None:
        """Take no more work; do not wait for functions that still run in threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _in_pool(self, function: Function, arguments: dict[str, object]) -> object:
        running = self._pool.submit(partial(function.call, **arguments))
        self._in_threads.add(running)
        running.add_done_callback(self._in_threads.discard)
        return await asyncio.wrap_future(running)


async def _settle(coroutine: Coroutine[Any, Any, object]) -> object:
    """Await in a task of its own, to tell the function's cancellation from the host's."""
    task = asyncio.ensure_future(coroutine)
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task})
        raise
    if task.cancelled():
        raise FunctionCancelledError
    return task.result()
