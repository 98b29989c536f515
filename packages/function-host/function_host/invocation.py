"""Calling a function, as the Python worker does: async ones on the event loop, the others in a pool of threads.

Here the loop also carries the listeners: an async function that blocks delays the renewal of messages too, whereas the
real host renews in a process of its own.
"""

import asyncio
import threading
import uuid
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import azure.functions as func
from azure.functions import _abc

from .annotations import CONTEXT_PARAMETER
from .functions import Function, HttpTrigger


class FunctionCancelledError(Exception):
    """The function ended with a cancellation of its own; a failure like any other."""


class TraceContext(_abc.TraceContext):
    """A trace of its own for each invocation, which nobody records: this host has no tracing."""

    trace_parent = ""
    """A `traceparent` of W3C, not sampled."""
    trace_state = ""
    attributes: dict[str, str] = {}  # noqa: RUF012  # Nobody changes it.

    def __init__(self) -> None:
        self.trace_parent = f"00-{uuid.uuid4().hex}-{uuid.uuid4().hex[:16]}-00"


class RetryContext(_abc.RetryContext):
    """As a function without a retry policy sees it; this host has no others."""

    retry_count = 0
    max_retry_count = 0
    exception = None  # type: ignore[assignment]


class InvocationContext(func.Context):
    """The `context` argument, with an id of its own for each invocation.

    Args:
        local: storage whose `invocation_id` the worker sets in the threads of its pool, and a function in threads of its own.
    """

    invocation_id = function_name = function_directory = ""
    thread_local_storage = threading.local()  # type: ignore[assignment]  # The worker gives an instance, too.
    trace_context = TraceContext()
    retry_context = RetryContext()

    def __init__(self, function: Function, local: threading.local) -> None:
        self.invocation_id = str(uuid.uuid4())
        self.function_name = function.name
        self.function_directory = function.directory
        self.thread_local_storage = local
        self.trace_context = TraceContext()


class Invoker:
    """Runs functions.

    Args:
        threads: size of the pool (`PYTHON_THREADPOOL_THREAD_COUNT`); None is Python's default, min(32, processors + 4).
    """

    def __init__(self, threads: int | None = None) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="function")
        self._in_threads: set[Future[object]] = set()
        self._local = threading.local()

    @property
    def running_threads(self) -> int:
        """Functions that run in threads now; nothing can end these before they end."""
        return len(self._in_threads)

    async def invoke(self, function: Function, value: object) -> object:
        """Call a function with its trigger's value and return what it returns.

        Raises:
            FunctionCancelledError: it was cancelled from within.
            RuntimeError: it returned something, and nothing takes it: only HTTP functions have an output here.
            Exception: whatever it raises.
        """
        context = InvocationContext(function, self._local)
        arguments: dict[str, object] = {function.argument: value}
        if function.takes_context:
            arguments[CONTEXT_PARAMETER] = context
        if function.is_async:
            result = await _settle(function.call(**arguments))
        else:
            result = await _settle(self._in_pool(function, arguments, context.invocation_id))
        if result is not None and not isinstance(function.trigger, HttpTrigger):
            # The worker's own words, by which the cause is found.
            raise RuntimeError(f"function {function.name!r} without a $return binding returned a non-None value")
        return result

    def close(self) -> None:
        """Take no more work; do not wait for functions that still run in threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _in_pool(self, function: Function, arguments: dict[str, object], invocation_id: str) -> object:
        running = self._pool.submit(self._in_thread, partial(function.call, **arguments), invocation_id)
        self._in_threads.add(running)
        running.add_done_callback(self._in_threads.discard)
        return await asyncio.wrap_future(running)

    def _in_thread(self, call: Callable[[], object], invocation_id: str) -> object:
        self._local.invocation_id = invocation_id
        try:
            return call()
        finally:
            self._local.invocation_id = None


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
