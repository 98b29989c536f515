"""The host: an app's functions with their listeners, in this process and on this event loop."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial

from azure.functions.decorators.function_app import FunctionRegister

from .app_settings import AppSettings
from .connections import Connection, StorageAccount
from .errors import SettingsError
from .functions import Function, HttpTrigger, QueueTrigger, ServiceBusTrigger, TimerTrigger
from .host_json import HostJson
from .http_server import HttpServer
from .invocation import Invoker
from .kill_switch import Checkpoint, pass_by
from .loading import describe_functions
from .message_processor import MessageProcessor
from .queue_listener import QueueListener
from .queue_rules import poison_queue_name
from .service_bus.connection import Namespace
from .service_bus.listener import ServiceBusListener
from .service_bus.processor import ServiceBusProcessor
from .service_bus.receiver import Delivery, ServiceBusSource
from .service_bus.values import value_of, values_of
from .storage_queue import StorageQueue
from .timer_listener import TimerListener
from .waiting import wait_for_event

logger = logging.getLogger(__name__)

REAL_INVISIBILITY = 600
"""Seconds for which the real host keeps a dequeued message invisible; not configurable there."""


@dataclass(frozen=True, slots=True)
class HostOptions:
    """What host.json does not say.

    Attributes:
        http_port: port on loopback; 0 chooses a free one.
        invisible: whole seconds until the messages of a killed host come back. Less than the real host's ten minutes is
            for tests and demonstrations.
        grace: seconds that running functions get when the host stops.
        checkpoint: told of each point that a message passes; a `KillSwitch` for example.
    """

    http_port: int = 0
    invisible: int = REAL_INVISIBILITY
    grace: float = 10.0
    checkpoint: Checkpoint = pass_by

    def __post_init__(self) -> None:
        if self.invisible < 1:
            raise SettingsError("Messages in work must be invisible for at least 1 second.")


class FunctionHost:
    """A host; made and run by `function_host`."""

    def __init__(self, functions: tuple[Function, ...], host_json: HostJson, options: HostOptions, threads: int | None):
        self._functions = functions
        self._host_json = host_json
        self._options = options
        self._invoker = Invoker(threads)
        self._stop = asyncio.Event()
        self._listeners: list[asyncio.Task[None]] = []
        self._timers: dict[str, TimerListener] = {}
        self._fired: set[asyncio.Task[None]] = set()
        prefix = host_json.extensions.http.route_prefix
        self._server = HttpServer(functions, prefix, self._invoker.invoke, self._start_timer, options.grace)
        self.http = ""

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of the app's functions."""
        return tuple(function.name for function in self._functions)

    @property
    def queues(self) -> tuple[str, ...]:
        """Names of the storage queues whose messages start functions."""
        return tuple(
            function.trigger.queue for function in self._functions if isinstance(function.trigger, QueueTrigger)
        )

    @property
    def routes(self) -> tuple[tuple[str, str], ...]:
        """Methods and path of each HTTP function, such as `("GET,PUT", "/api/games/{id}")`."""
        prefix = self._host_json.extensions.http.route_prefix
        http = [function.trigger for function in self._functions if isinstance(function.trigger, HttpTrigger)]
        return tuple(
            (",".join(sorted(item.methods)) or "ANY", "/".join(("", prefix, item.route.template)).replace("//", "/"))
            for item in http
        )

    @property
    def abandoned_threads(self) -> int:
        """Functions that still run in threads, after the grace; only the end of the process ends them."""
        return self._invoker.running_threads

    async def fire_timer(self, name: str, *, past_due: bool = False) -> None:
        """Run a timer function now and wait for it, beside its schedule."""
        await self._timers[name].fire(past_due=past_due)

    def _start_timer(self, name: str) -> bool:
        if name not in self._timers:
            return False
        task = asyncio.create_task(self.fire_timer(name), name=name)
        self._fired.add(task)
        task.add_done_callback(self._fired.discard)
        return True

    async def run_until(self, stop: asyncio.Event) -> None:
        """Return when told to stop; raise when a listener broke, which is a defect of this host."""
        stopped = asyncio.create_task(stop.wait())
        done, _ = await asyncio.wait({stopped, *self._listeners}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        for task in done:
            task.result()

    async def open(
        self, accounts: Mapping[Connection, StorageAccount], namespaces: Mapping[Connection, Namespace]
    ) -> None:
        """Start to serve."""
        self.http = await self._server.open(self._options.http_port)
        logger.info("HTTP functions are at %s; their keys (authLevel) are not checked here", self.http)
        for function in self._functions:
            match function.trigger:
                case QueueTrigger(queue, connection):
                    self._listen(function, self._queue_listener(function, queue, accounts[connection]))
                case ServiceBusTrigger() as trigger:
                    self._listen(function, self._bus_listener(function, trigger, namespaces[trigger.connection]))
                case TimerTrigger() as trigger:
                    call = partial(self._invoker.invoke, function)
                    timer = TimerListener(function.name, trigger, call, _now, wait_for_event)
                    self._timers[function.name] = timer
                    self._listen(function, timer)
                case HttpTrigger():
                    pass  # Served by the one HTTP server.

    def _listen(self, function: Function, listener: QueueListener | ServiceBusListener | TimerListener) -> None:
        self._listeners.append(asyncio.create_task(listener.run(self._stop), name=function.name))

    def _queue_listener(self, function: Function, queue_name: str, account: StorageAccount) -> QueueListener:
        options = self._host_json.extensions.queues
        queue = StorageQueue(account.service, queue_name)
        poison_name = poison_queue_name(queue_name)
        processor = MessageProcessor(
            name=function.name,
            call=partial(self._invoker.invoke, function),
            queue=queue,
            poison=StorageQueue(account.service, poison_name) if poison_name else None,
            options=options,
            invisible=self._options.invisible,
            wait=wait_for_event,
            checkpoint=self._options.checkpoint,
        )
        return QueueListener(
            name=function.name,
            queue=queue,
            process=processor.process,
            options=options,
            invisible=self._options.invisible,
            wait=wait_for_event,
            chance=random.uniform,
        )

    def _bus_listener(self, function: Function, trigger: ServiceBusTrigger, namespace: Namespace) -> ServiceBusListener:
        options = self._host_json.extensions.service_bus

        async def call(deliveries: Sequence[Delivery]) -> object:
            if trigger.many:
                return await self._invoker.invoke(function, values_of(deliveries, binary=trigger.binary))
            return await self._invoker.invoke(function, value_of(deliveries[0], binary=trigger.binary))

        auto_complete = options.auto_complete_messages if trigger.auto_complete is None else trigger.auto_complete
        processor = ServiceBusProcessor(
            name=function.name,
            call=call,
            many=trigger.many,
            sessions=trigger.entity.sessions,
            auto_complete=auto_complete,
            renewal=options.max_auto_lock_renewal_duration.total_seconds(),
            clock=_now,
            wait=wait_for_event,
            checkpoint=self._options.checkpoint,
        )
        source = ServiceBusSource(namespace.client, trigger.entity, options.prefetch_count)
        return ServiceBusListener(source, processor, options, wait_for_event)

    async def close(self) -> None:
        """Stop polling, give running functions their grace, then drop what still runs as a crash would."""
        self._stop.set()
        running = [*self._listeners, *self._fired]
        late, _ = await asyncio.gather(self._late(running), self._server.close())
        for task in late:
            logger.warning("%s: still running after the grace; its messages will come back", task.get_name())
            task.cancel()
        outcomes = await asyncio.gather(*running, return_exceptions=True)
        self._invoker.close()
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome  # A defect of this host must not end in silence.

    async def _late(self, running: list[asyncio.Task[None]]) -> set[asyncio.Task[None]]:
        """Those that still run after the grace."""
        if not running:
            return set()
        return (await asyncio.wait(running, timeout=self._options.grace))[1]


@asynccontextmanager
async def function_host(
    app: FunctionRegister,
    settings: Mapping[str, str],
    *,
    host_json: HostJson | None = None,
    options: HostOptions | None = None,
) -> AsyncIterator[FunctionHost]:
    """Run an app's functions while the context is open.

    Args:
        app: the app, not hosted before: its functions can be read only once.
        settings: app settings (`AzureWebJobsStorage`, other connections, ...). They are not put into `os.environ`.
        host_json: as read by `load_host_json`; the defaults without it.
        options: port, invisibility, grace, checkpoint.

    Raises:
        HostError: the app or its settings cannot be hosted.
    """
    known = AppSettings(settings)
    functions = describe_functions(app, known)
    async with AsyncExitStack() as clients:
        triggers = [function.trigger for function in functions]
        queues = {trigger.connection for trigger in triggers if isinstance(trigger, QueueTrigger)}
        buses = {trigger.connection for trigger in triggers if isinstance(trigger, ServiceBusTrigger)}
        accounts = {queue: await clients.enter_async_context(StorageAccount(queue)) for queue in queues}
        namespaces = {buse: await clients.enter_async_context(Namespace(buse)) for buse in buses}
        host = FunctionHost(functions, host_json or HostJson(), options or HostOptions(), _threads(known))
        try:
            await host.open(accounts, namespaces)
            yield host
        finally:
            await host.close()


def _now() -> datetime:
    return datetime.now(timezone.utc)


def _threads(settings: AppSettings) -> int | None:
    text = settings.get("PYTHON_THREADPOOL_THREAD_COUNT")
    if text is None:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise SettingsError("PYTHON_THREADPOOL_THREAD_COUNT must be a whole number of threads, at least 1.")
    return int(text)
