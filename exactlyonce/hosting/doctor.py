"""The examination: all findings of the doctor, from the files of an application to its accounts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal

import azure.functions as func

from exactlyonce.effects.attempt import Strategy
from exactlyonce.errors import ConfigurationError, ExactlyOnceError
from exactlyonce.hosting.application import ExactlyOnce
from exactlyonce.hosting.config.checks import leading_to, unheard_by
from exactlyonce.hosting.config.connections import StorageConnection
from exactlyonce.hosting.config.settings import Settings, seconds_of
from exactlyonce.protocols.colocated import Colocated
from exactlyonce.protocols.outbox.protocol import Outbox
from exactlyonce.protocols.resequencer.protocol import Resequencer
from exactlyonce.protocols.stream.protocol import VersionStream
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.inspection import Inspection, Throughput, inspected
from exactlyonce.stores.cosmos.partition import LIBRARY_PATH
from exactlyonce.stores.cosmos.replies import FAILURES
from exactlyonce.transports.storage_queue import Length, lengths

# Findings.


Level = Literal["wrong", "unknown", "advice", "cost", "fine"]
"""`wrong`: messages are lost, wait for ever or cannot be processed. `unknown`: could not be examined. `advice`: works, and
could work better. `cost`: costs money at rest. `fine`: examined, without a fault."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding.

    Attributes:
        level: the severity.
        subject: the part of the application, such as `container 'games'`.
        text: the fault, and the change to make.
    """

    level: Level
    subject: str
    text: str


_wrong, _advice = partial(Finding, "wrong"), partial(Finding, "advice")


# Indexes: the paths of the library's searches, and the indexing policies of containers.


LIBRARY: Final = ("/pk/?", "/kind/?", "/begin/?", "/until/?", "/number/?", "/hashes/[]/?")
_OWING: Final = "/_ledger/outbox/[]/tx/?"
_COMPANIONS: Final = ("/_kind/?", "/owing_since/?", "/entity/?")
_BY_STRATEGY: Final[Mapping[type, tuple[str, ...]]] = {
    Outbox: (_OWING, "/_ledger/kept/[]/due/?"),
    Colocated: _COMPANIONS,
    VersionStream: _COMPANIONS,
    Resequencer: (_OWING, "/_ledger/receptions/[]/held/*", "/_ledger/receptions/[]/gap_since/?"),
}


def searched(strategy: Strategy) -> tuple[str, ...]:
    """The paths by which the sweeper searches the container of a strategy's entities; none for foreign strategies."""
    return next((paths for kind, paths in _BY_STRATEGY.items() if isinstance(strategy, kind)), ())


def unindexed(policy: Mapping[str, Any], paths: Sequence[str]) -> list[str]:
    """The paths that a container's indexing policy does not index.

    Args:
        policy: the indexing policy in the container's properties; an empty policy is the default, which indexes everything.
        paths: paths that end with `/?`, for a value, or `/*`, for everything below.
    """
    if policy.get("indexingMode", "consistent").lower() == "none":
        return list(paths)
    included = [item["path"] for item in policy.get("includedPaths", [{"path": "/*"}])]
    excluded = [item["path"] for item in policy.get("excludedPaths", [])]
    return [path for path in paths if _closeness(included, path) <= _closeness(excluded, path)]


def _closeness(entries: Sequence[str], path: str) -> int:
    """Length of the nearest entry that covers a path; 0 without an entry. The service prefers the nearer of two."""
    return max(
        (len(entry) for entry in entries if entry == path or (entry.endswith("*") and path.startswith(entry[:-1]))),
        default=0,
    )


# The Functions host's view of an application: host.json, and the triggers of its functions.


POISON: Final = "-poison"
_MONTH: Final = 30.4 * 24 * 3600
_USD_PER_POLL: Final = 0.004 / 10_000
"""List price of an operation on a queue."""
_HOST: Final = "host.json"
_FEWEST_DELIVERIES: Final = 5
_SHORTEST_OUTAGE: Final = 120.0
_LONGEST_INTERVAL: Final = 10.0
"""Seconds."""


def triggers_of(app: func.FunctionApp) -> list[dict[str, Any]]:
    """The triggers of an app's functions, as the host gets them."""
    triggers = (function.get_trigger() for function in app.get_functions())
    return [dict(trigger.get_dict_repr()) for trigger in triggers if trigger is not None]


def queues_of(triggers: Iterable[dict[str, Any]]) -> list[str]:
    """The storage queues with a function."""
    return [str(trigger["queueName"]) for trigger in triggers if trigger.get("type") == "queueTrigger"]


def of_triggers(triggers: list[dict[str, Any]], leading: Iterable[str] = (), *, swept: bool) -> Iterator[Finding]:
    """Whether every queue that leads to the app has a function and a poison function, and a timer sweeps.

    Args:
        triggers: the triggers of the app.
        leading: queues and topics that lead to the app; not looked for if a trigger takes its queue from a setting.
        swept: whether a strategy of the app can owe outputs.
    """
    queues = queues_of(triggers)
    read = {str(trigger.get("queueName") or trigger.get("topicName")) for trigger in triggers}
    for queue in leading:
        if queue not in read and not any("%" in name for name in read):
            yield _wrong(f"queue {queue!r}", "no function takes its messages. Add once.serve_on(app).")
    for queue in queues:
        if not queue.endswith(POISON) and f"{queue}{POISON}" not in queues:
            yield _wrong(
                f"queue {queue!r}",
                f"it has no poison function: messages that the host gives up on expire after 7 days, undecided. Add "
                f"once.serve_on(app), or a function on {queue + POISON!r} that awaits once.settle(…).",
            )
    if swept and not any(trigger.get("type") == "timerTrigger" for trigger in triggers):
        yield _wrong(
            "functions",
            "no function has a timer, so nothing sweeps: outputs of a process that died wait for the next message of their "
            "entity. Add once.serve_on(app), once.sweep_on(app), or a timer that awaits once.sweep().",
        )


def of_host_json(folder: Path, queues: int) -> Iterator[Finding]:
    """Whether `host.json` suits the library, and the cost of polling at rest.

    Args:
        folder: the folder of the app.
        queues: number of storage queues with a function.
    """
    try:
        host = json.loads((folder / _HOST).read_text("utf-8-sig"))
        options = host.get("extensions", {}).get("queues", {})
        most, encoding = int(options.get("maxDequeueCount", 5)), str(options.get("messageEncoding", "base64"))
        visible = seconds_of(options.get("visibilityTimeout", "00:00:00"))
        interval = seconds_of(options.get("maxPollingInterval", "00:01:00"))
        if visible is None or interval is None:
            raise ValueError("no time span")
    except FileNotFoundError:
        yield _wrong(_HOST, "this folder has none: run the command in the folder of the function app.")
        return
    except (OSError, ValueError, TypeError, AttributeError) as error:
        yield _wrong(_HOST, f"it cannot be read ({type(error).__name__}): correct it; the host refuses it, too.")
        return
    if not queues:
        return
    yield from _of_options(most, visible, interval, encoding)
    yield Finding(
        "cost",
        "polling of empty queues",
        f"{queues} queues, each asked every {interval:g} s by an idle instance: about "
        f"{queues * _MONTH / interval * _USD_PER_POLL:.2f} USD a month while one runs.",
    )


def _of_options(most: int, visible: float, interval: float, encoding: str) -> Iterator[Finding]:
    if encoding.lower() != "base64":
        text = f'messageEncoding is {encoding!r}, and the library sends base64: set it to "base64".'
        yield _wrong(_HOST, text)
    if most < _FEWEST_DELIVERIES:
        text = (
            f"maxDequeueCount is {most}: set it to {_FEWEST_DELIVERIES} or more, since a poison function that fails so often "
            "loses its message to the host, too."
        )
        yield _advice(_HOST, text)
    if most * visible < _SHORTEST_OUTAGE:
        text = (
            f"a message is given up on after failing for {most * visible:g} s (maxDequeueCount x visibilityTimeout): set "
            'visibilityTimeout to "00:00:30", so that a short outage does not send every message through its poison queue.'
        )
        yield _advice(_HOST, text)
    if interval > _LONGEST_INTERVAL:
        text = (
            f"an empty queue is polled only every {interval:g} s, so a message may start that late in every queue on its way: "
            'set maxPollingInterval to "00:00:02".'
        )
        yield _advice(_HOST, text)


# The accounts of an application: containers, rights, the clock, queues, and costs at rest.


_SKEW_ADVISED: Final = timedelta(seconds=5)
_SKEW_WRONG: Final = timedelta(minutes=1)
_USD_PER_100_RU: Final = 5.84
"""A month of manual throughput in one region, by the list price."""
_AUTOSCALE_AT_REST: Final = 0.1 * 1.5
"""A tenth of the maximum, at 1.5 times the price."""


async def verified(once: ExactlyOnce) -> list[Finding]:
    """The result of the check at start-up, and the owner of the library's container."""
    settings, _ = once.configuration
    try:
        ownership = await once.ownership()
        stored = await ownership.stored()
    except ConfigurationError as error:
        lines = str(error).splitlines()
        problems = [line.removeprefix("- ") for line in lines if line.startswith("- ")]
        return [_wrong("accounts", line) for line in problems or lines]
    except ExactlyOnceError as error:
        return [Finding("unknown", "accounts", str(error))]
    findings = [Finding("fine", "accounts", "they are set up as the library needs them")]
    if stored is None:
        findings.append(_advice("application", "it has never started: the first start stores name and retention"))
    elif stored.application.name != settings.application:
        findings.append(
            _wrong(
                "application",
                f"the library's container belongs to {stored.application.name!r}, and this is {settings.application!r}: set "
                "EXACTLYONCE__container to a container of its own.",
            )
        )
    elif settings.retention not in (None, stored.application.retention.current):
        findings.append(
            _wrong(
                "application",
                f"EXACTLYONCE__retention is {settings.retention}, and stored is {stored.application.retention.current}: remove "
                "the setting, or run 'exactlyonce ops retention'.",
            )
        )
    return findings


async def of_cosmos(once: ExactlyOnce, now: Callable[[], datetime]) -> list[Finding]:
    """Indexes, rights, clock and throughput. Findings of `verified` about containers are not repeated.

    Args:
        now: this machine's time of day.
    """
    settings, _ = once.configuration
    ahead: list[timedelta] = []
    connection = CosmosConnection(
        settings.account_endpoint,
        settings.database,
        key=settings.account_key.get_secret_value() if settings.account_key else None,
        client_id=settings.client_id,
        dated=lambda service: ahead.append(now() - service),
    )
    findings: list[Finding] = []
    try:
        database = (await connection.client()).get_database_client(settings.database)
        for name, (paths, searches) in _containers(once, settings).items():
            inspection = await inspected(database, name, paths)
            if inspection is not None:  # Else `verified` gives the reason.
                findings += _of_container(name, searches, inspection)
    except FAILURES as error:
        findings.append(Finding("unknown", "Cosmos DB", f"it could not be reached ({type(error).__name__})."))
    finally:
        await connection.close()
    return [*findings, *_of_clock(ahead)]


def _containers(once: ExactlyOnce, settings: Settings) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """By container: the paths of the partition key, and the paths of the library's searches."""
    containers: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
        settings.library_container: ((LIBRARY_PATH,), LIBRARY)
    }
    for entity in once.entities:
        searches = containers.get(entity.container, (entity.paths, ()))[1]
        containers[entity.container] = entity.paths, tuple(dict.fromkeys((*searches, *searched(entity.strategy))))
    return containers


def _of_container(name: str, searches: tuple[str, ...], inspection: Inspection) -> Iterator[Finding]:
    subject = f"container {name!r}"
    for path in unindexed(inspection.policy, searches):
        dear = (
            "every look for an old message reads all that is kept of its entity"
            if searches == LIBRARY
            else "the sweeper reads the whole container every minute"
        )
        yield _advice(subject, f"it does not index {path}, so {dear}: add the path to its indexes.")
    if inspection.refused:
        yield _wrong(
            subject,
            f"the identity of this command may not {', '.join(inspection.refused)}: give it the data-plane role of the app on "
            "the database (infra/README.md, Roles). The app's own identity may have the role.",
        )
    yield Finding("cost", subject, _cost(inspection.throughput))


def _cost(throughput: Throughput | str) -> str:
    if not isinstance(throughput, Throughput):
        if throughput == "none":
            return "it has no throughput of its own: 0.25 USD a month for each GB, if the account is serverless"
        return "not known: this identity may not read its throughput"
    month = throughput.rate / 100 * _USD_PER_100_RU
    if throughput.autoscale:
        return f"autoscale to {throughput.rate} RU/s: about {month * _AUTOSCALE_AT_REST:.0f} USD a month"
    return f"{throughput.rate} RU/s: about {month:.0f} USD a month"


def _of_clock(ahead: list[timedelta]) -> Iterator[Finding]:
    """The distance of this machine's clock from the service's. A reply's `Date` is up to a second old: the least counts."""
    if not ahead:
        return
    skew = min(ahead, key=abs)
    if abs(skew) < _SKEW_ADVISED:
        yield Finding(
            "fine", "clock", f"it agrees with that of Cosmos DB, to {max(1, round(abs(skew).total_seconds()))} s"
        )
        return
    yield Finding(
        "wrong" if abs(skew) >= _SKEW_WRONG else "advice",
        "clock",
        f"it is {abs(skew).total_seconds():.0f} s {'ahead of' if skew > timedelta() else 'behind'} that of Cosmos DB: set this "
        "machine's clock. Where the app runs, the sweeper comes early or late by as much.",
    )


async def of_queues(connection: StorageConnection, names: Iterable[str]) -> list[Finding]:
    """Whether storage queues exist, and how many messages wait in poison queues."""
    listed = lengths(connection.account, connection.client_id, names)
    return [finding async for name, length in listed if (finding := _of_queue(name, length)) is not None]


def _of_queue(name: str, length: Length) -> Finding | None:
    subject, is_poison = f"queue {name!r}", name.endswith(POISON)
    match length:
        case "absent" if is_poison:
            return None  # The host creates a poison queue with the first message.
        case "absent":
            return _advice(subject, "it is not there: create it, or correct its name. A first send creates it, too.")
        case "refused":
            return Finding("unknown", subject, "the account refuses to show it to this identity")
        case "no answer":
            return Finding("unknown", subject, "the account did not answer: is it running?")
    if length and is_poison:
        return _advice(
            subject,
            f"{length} messages wait in it. If they stay for an hour, its function is disabled or fails: they expire after "
            "7 days.",
        )
    return Finding("fine", subject, f"{length} messages wait in it")


async def examined(once: ExactlyOnce, module: ModuleType, folder: Path, now: Callable[[], datetime]) -> list[Finding]:
    """All findings about an application. The examination reads, and changes nothing.

    Args:
        once: the application.
        module: the application's module, with the function app at its top level.
        folder: the folder of the app, with `host.json`.
        now: this machine's time of day.
    """
    app = next((var for var in vars(module).values() if isinstance(var, func.FunctionApp)), None)
    triggers = [] if app is None else triggers_of(app)
    findings = [*of_host_json(folder, len(queues_of(triggers)))]
    if app is None:
        findings.append(Finding("unknown", "functions", "the module has no FunctionApp at its top level"))
    else:
        swept = any(entity.strategy.unfinished for entity in once.entities)
        settings, _ = once.configuration
        leading = [item.name for item in leading_to(once.entities, once.destinations)]
        findings += of_triggers(triggers, [settings.destinations.get(name, name) for name in leading], swept=swept)
    findings += [_advice("announcements", text) for text in unheard_by(once.entities, once.routes.subscribers)]
    findings += await verified(once)
    findings += await of_cosmos(once, now)
    settings, connections = once.configuration
    if connections.storage is not None and settings.transport == "storage":
        findings += await of_queues(connections.storage, dict.fromkeys((*queues_of(triggers), *once.needs.queues)))
    return findings
