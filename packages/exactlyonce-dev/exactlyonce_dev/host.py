"""The process of an app under `exactlyonce dev`: creates what the app declares, and serves its functions."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TextIO

from azure.core.exceptions import AzureError, ResourceExistsError
from azure.cosmos import CosmosClient, PartitionKey
from azure.functions.decorators.function_app import FunctionRegister
from azure.storage.queue import QueueServiceClient

from exactlyonce.cli.command import DONE, NOT_DONE, NOT_POSSIBLE
from exactlyonce.errors import ConfigurationError
from exactlyonce.hosting import ExactlyOnce, Needs
from exactlyonce.hosting.accounts.port import observer_of_this_process
from exactlyonce_dev.backstage import Backstage
from exactlyonce_dev.literals import Names
from exactlyonce_dev.plan import LOOPBACK, STORAGE, Plan
from exactlyonce_dev.witness import Event, Witness
from function_host import HostError, HostOptions, function_host, load_host_json
from function_host.app_settings import AppSettings
from function_host.brief import BriefFormatter
from function_host.functions import Function, ServiceBusTrigger
from function_host.loading import describe_functions, load_app

_INVISIBLE_SECONDS: Final = 30
"""How long messages of a killed app stay invisible: the ten minutes of the real host are long for a developer."""
_DEADLINE_SECONDS: Final = 120
_POLL_SECONDS: Final = 0.05
_DEAD_LETTERS: Final = "/$DeadLetterQueue"
_log = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve the app of the present folder until a signal. Returns 0 after it, 1 when it broke, 2 when it cannot start."""
    given = _parser().parse_args(arguments)
    # What functions print belongs to the log, and that of the processes that they start.
    ready, sys.stdout = os.fdopen(os.dup(1), "w", encoding="utf-8"), sys.stderr
    os.dup2(2, 1)
    _log_briefly(Path.cwd())
    try:
        app = load_app(Path.cwd())
        if given.topology is not None:
            functions = describe_functions(app, AppSettings(os.environ))
            given.topology.write_text(json.dumps(topology(functions, _queues(_needs()))))
        else:
            asyncio.run(_serve(app, given.http_port, ready, given.backstage))
    except (ConfigurationError, HostError) as error:
        _log.error("%s", error)  # The sentence says what to do.
        return NOT_POSSIBLE
    except Exception:
        _log.exception("the app broke")
        return NOT_DONE
    return DONE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m exactlyonce_dev.host")
    parser.add_argument("--http-port", type=int, default=0)
    parser.add_argument(
        "--backstage", type=Path, help="answer the console on this socket file, and tell it of deliveries"
    )
    parser.add_argument("--topology", type=Path, help="write the queues and topics of Service Bus there, and end")
    return parser


def _log_briefly(app: Path) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(BriefFormatter("%(levelname)s %(name)s: %(message)s", app))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("azure").setLevel(logging.ERROR)
    logging.getLogger("exactlyonce.hosting.deliveries.receiver").setLevel(logging.DEBUG)  # It logs each duplicate.


async def _serve(app: FunctionRegister, port: int, ready: TextIO, backstage: Path | None) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    plan, needs = Plan.of(Path.cwd(), port), _needs()
    await asyncio.gather(*(_listening(item) for item in (plan.cosmos, plan.queues, plan.blobs, plan.bus) if item))
    try:
        for need in needs:
            await asyncio.to_thread(create_containers, need, plan.settings)
    except AzureError as error:
        raise ConfigurationError(
            f"The local Cosmos DB refused to create what the app declares ({type(error).__name__}). Compare COSMOS__accountKey "
            "with that of local.settings.json.example."
        ) from error
    options = HostOptions(http_port=port, invisible=_INVISIBLE_SECONDS)
    host_json = load_host_json(Path("host.json"))
    async with AsyncExitStack() as running:
        if backstage is not None:
            await running.enter_async_context(_show(ready).serving(backstage))
        host = await running.enter_async_context(
            function_host(app, plan.settings, host_json=host_json, options=options)
        )
        queues = {*host.queues, *(() if plan.bus else _queues(needs))}
        await asyncio.to_thread(create_queues, queues, plan.settings[STORAGE])
        for need in needs:
            if need.blob_container is not None:
                await asyncio.to_thread(create_blob_container, need.blob_container, plan.settings[STORAGE])
        routes = [f"{methods} {host.http}{route}" for methods, route in host.routes]
        print(json.dumps({"http": host.http, "functions": host.functions, "routes": routes}), file=ready, flush=True)
        await host.run_until(stopped)


def _show(told: TextIO) -> Backstage:
    """Let the applications tell of deliveries, and answer the console."""
    applications = _applications()
    backstage = Backstage(applications)

    def tell(event: Event) -> None:
        print(json.dumps(event, default=str), file=told, flush=True)  # Decimals, as their digits.

    now = partial(datetime.now, UTC)
    if observer_of_this_process(now) is None:  # An app that exports telemetry keeps it.
        backstage.witness = Witness(tell, backstage.destination, now)
        for application in applications:
            application.observe(backstage.witness)
    return backstage


async def _listening(port: int) -> None:
    """Wait until a server of this machine listens."""
    try:
        async with asyncio.timeout(_DEADLINE_SECONDS):
            while True:
                with suppress(ConnectionRefusedError):
                    _, writer = await asyncio.open_connection(LOOPBACK, port)
                    writer.close()
                    return
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        raise ConfigurationError(f"Nothing listens on port {port} after {_DEADLINE_SECONDS} s.") from None


def _applications() -> tuple[ExactlyOnce, ...]:
    """The applications at the top level of the app's modules."""
    found = [value for module in _modules() for value in list(vars(module).values()) if isinstance(value, ExactlyOnce)]
    return tuple({id(item): item for item in found}.values())


def application_of(app: Path, type: str) -> tuple[ExactlyOnce, Names]:
    """Import the app of a folder; return its application that has an entity type, and the names of the app's objects.

    Raises:
        ConfigurationError: it cannot be imported, or has no such application.
    """
    try:
        load_app(app)
    except HostError as error:
        raise ConfigurationError(str(error)) from error
    for application in _applications():
        if any(entity.name == type for entity in application.entities):
            return application, Names.of(_modules())
    raise ConfigurationError(f"There is no entity type {type!r} in the app any more.")


def _modules() -> list[ModuleType]:
    """The app's own modules: not those of an environment in its folder."""
    here = Path.cwd()
    found = [
        (module, Path(file)) for module in list(sys.modules.values()) if (file := getattr(module, "__file__", None))
    ]
    return [item for item, file in found if file.is_relative_to(here) and "site-packages" not in file.parts]


def _needs() -> tuple[Needs, ...]:
    return tuple(application.needs for application in _applications())


def _queues(needs: Iterable[Needs]) -> set[str]:
    return {name for need in needs for name in need.queues}


# What the app declares, created in the accounts of this machine.


def create_containers(needs: Needs, settings: Mapping[str, str]) -> None:
    """Create the database of an application and its containers, where they do not exist."""
    with CosmosClient(settings["COSMOS__accountEndpoint"], settings.get("COSMOS__accountKey", "")) as client:
        database = client.create_database_if_not_exists(needs.database)
        for name, paths in needs.containers.items():
            key = PartitionKey(paths[0]) if len(paths) == 1 else PartitionKey(list(paths), kind="MultiHash")
            database.create_container_if_not_exists(name, key)
        database.create_container_if_not_exists(needs.library_container, PartitionKey("/pk"), default_ttl=-1)


def create_queues(names: Iterable[str], connection_string: str) -> None:
    """Create storage queues, where they do not exist."""
    with QueueServiceClient.from_connection_string(connection_string) as service:
        for name in names:
            with suppress(ResourceExistsError):
                service.create_queue(name).close()


def create_blob_container(name: str, connection_string: str) -> None:
    """Create a container for blobs, where it does not exist."""
    from azure.storage.blob import BlobServiceClient  # noqa: PLC0415  # It loads slowly, and few apps have blobs.

    with BlobServiceClient.from_connection_string(connection_string) as service, suppress(ResourceExistsError):
        service.create_container(name)


def topology(functions: Iterable[Function], destinations: Iterable[str]) -> dict[str, Any]:
    """The queues and topics of an app on Service Bus, as the configuration of Microsoft's emulator.

    Args:
        functions: of the app. A trigger on a subscription makes its entity a topic.
        destinations: queues and topics that the app sends to.
    """
    queues: dict[str, bool] = {}
    topics: dict[str, dict[str, bool]] = {}
    for trigger in (function.trigger for function in functions):
        if isinstance(trigger, ServiceBusTrigger):
            entity, name = trigger.entity, trigger.entity.name.removesuffix(_DEAD_LETTERS)
            if entity.subscription is None:
                queues[name] = queues.get(name, False) or entity.sessions
            else:
                found = topics.setdefault(name, {})
                subscription = entity.subscription.removesuffix(_DEAD_LETTERS)
                found[subscription] = found.get(subscription, False) or entity.sessions
    queues |= {name: False for name in destinations if name not in queues and name not in topics}
    namespace = {
        "Name": "local",
        "Queues": [_holding(name, sessions) for name, sessions in queues.items()],
        "Topics": [
            {"Name": name, "Subscriptions": [_holding(item, sessions) for item, sessions in subscriptions.items()]}
            for name, subscriptions in topics.items()
        ],
    }
    return {"UserConfig": {"Namespaces": [namespace]}}


def _holding(name: str, sessions: bool) -> dict[str, Any]:
    return {"Name": name, "Properties": {"RequiresSession": sessions}}


if __name__ == "__main__":
    sys.exit(main())
