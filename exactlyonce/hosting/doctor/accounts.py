"""What the accounts of an application show: containers, rights, the clock, queues, and what is paid for at rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from exactlyonce.errors import ConfigurationError, ExactlyOnceError
from exactlyonce.hosting.application import ExactlyOnce
from exactlyonce.hosting.config.connections import StorageConnection
from exactlyonce.hosting.config.settings import Settings
from exactlyonce.hosting.doctor.finding import Finding
from exactlyonce.hosting.doctor.functions import POISON
from exactlyonce.hosting.doctor.indexes import LIBRARY, searched, unindexed
from exactlyonce.stores.cosmos.client import CosmosConnection
from exactlyonce.stores.cosmos.inspection import Inspection, Throughput, inspected
from exactlyonce.stores.cosmos.layout import LIBRARY_PATH
from exactlyonce.stores.cosmos.replies import FAILURES
from exactlyonce.transports.storage_queue_lengths import Length, lengths

_SKEW_ADVISED: Final = timedelta(seconds=5)
_SKEW_WRONG: Final = timedelta(minutes=1)
_USD_PER_100_RU: Final = 5.84
"""A month of manual throughput in one region, by the list price."""
_AUTOSCALE_AT_REST: Final = 0.1 * 1.5
"""A tenth of the maximum, at 1.5 times the price."""


async def verified(once: ExactlyOnce) -> list[Finding]:
    """What the check at start-up says, and whose the library's container is."""
    settings, _ = once.configuration
    try:
        ownership = await once.ownership()
        stored = await ownership.stored()
    except ConfigurationError as error:
        lines = str(error).splitlines()
        problems = [line.removeprefix("- ") for line in lines if line.startswith("- ")]
        return [Finding("wrong", "accounts", line) for line in problems or lines]
    except ExactlyOnceError as error:
        return [Finding("unknown", "accounts", str(error))]
    found = [Finding("fine", "accounts", "they are set up as the library needs them")]
    if stored is None:
        found.append(
            Finding("advice", "application", "it has never started: its first start stores name and retention")
        )
    elif stored.application.name != settings.application:
        found.append(
            Finding(
                "wrong",
                "application",
                f"the library's container belongs to {stored.application.name!r}, and this is {settings.application!r}: set "
                "EXACTLYONCE__container to a container of its own.",
            )
        )
    elif settings.retention not in (None, stored.application.retention.current):
        found.append(
            Finding(
                "wrong",
                "application",
                f"EXACTLYONCE__retention is {settings.retention}, and stored is {stored.application.retention.current}: remove "
                "the setting, or run 'exactlyonce ops retention'.",
            )
        )
    return found


async def of_cosmos(once: ExactlyOnce, now: Callable[[], datetime]) -> list[Finding]:
    """Indexes, rights, clock and throughput. What `verified` says of containers is not said again.

    Args:
        once: the application.
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
    found: list[Finding] = []
    try:
        database = (await connection.client()).get_database_client(settings.database)
        for name, (paths, searches) in _containers(once, settings).items():
            inspection = await inspected(database, name, paths)
            if inspection is not None:  # Else `verified` says why.
                found += _of_container(name, searches, inspection)
    except FAILURES as error:
        found.append(Finding("unknown", "Cosmos DB", f"it could not be reached ({type(error).__name__})."))
    finally:
        await connection.close()
    return [*found, *_of_clock(ahead)]


def _containers(once: ExactlyOnce, settings: Settings) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """By container: the paths of its partition key, and the paths that the library searches by."""
    found: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {settings.library_container: ((LIBRARY_PATH,), LIBRARY)}
    for entity in once.entities:
        known = found.get(entity.container, (entity.paths, ()))[1]
        found[entity.container] = entity.paths, tuple(dict.fromkeys((*known, *searched(entity.strategy))))
    return found


def _of_container(name: str, searches: tuple[str, ...], found: Inspection) -> Iterator[Finding]:
    subject = f"container {name!r}"
    for path in unindexed(found.policy, searches):
        dear = (
            "every look for an old message reads all that is kept of its entity"
            if searches == LIBRARY
            else "the sweeper reads the whole container every minute"
        )
        yield Finding("advice", subject, f"it does not index {path}, so {dear}: add the path to its indexes.")
    if found.refused:
        yield Finding(
            "wrong",
            subject,
            f"the identity of this command may not {', '.join(found.refused)}: give it the data-plane role of the app on the "
            "database (infra/README.md, Roles). The app's own identity may have it.",
        )
    yield Finding("cost", subject, _cost(found.throughput))


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
    """How far this machine's clock is from the service's. The `Date` of a reply is up to a second old, so the least counts."""
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
    """Which storage queues are there, and how many messages wait in poison queues.

    Args:
        connection: of the storage account.
        names: of the queues.
    """
    known = lengths(connection.account, connection.client_id, names)
    return [one async for name, length in known if (one := _of_queue(name, length)) is not None]


def _of_queue(name: str, length: Length) -> Finding | None:
    subject, is_poison = f"queue {name!r}", name.endswith(POISON)
    match length:
        case "absent" if is_poison:
            return None  # The host creates it with its first message.
        case "absent":
            return Finding(
                "advice", subject, "it is not there: create it, or correct its name. A first send creates it, too."
            )
        case "refused":
            return Finding("unknown", subject, "the account refuses to show it to this identity")
        case "no answer":
            return Finding("unknown", subject, "the account did not answer: is it running?")
    if length and is_poison:
        return Finding(
            "advice",
            subject,
            f"{length} messages wait in it. If they stay for an hour, its function is disabled or fails: they expire after "
            "7 days.",
        )
    return Finding("fine", subject, f"{length} messages wait in it")
