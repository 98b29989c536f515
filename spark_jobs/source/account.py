"""The account: its client, its refusals, its clock, its containers, and the application that owns the library's.

A job reads with the consistency level Eventual and without session tokens: a scan has no write of its own to wait for. So its
reads may lag behind as a replica does, and two pages may come from two replicas. Jobs allow for that: rules do not judge
within their grace, suspects are read again, and every delete has the ETag that was read as its condition.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Final, Self

from azure.core.exceptions import AzureError, ClientAuthenticationError
from azure.cosmos import CosmosClient, DatabaseProxy
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError, CosmosResourceNotFoundError
from azure.identity import ClientSecretCredential, DefaultAzureCredential

from exactlyonce.errors import ConfigurationError, ExactlyOnceError, StoredDataError
from exactlyonce.records.application import KIND, Application, OwnedType, read_application
from exactlyonce.stores.cosmos.partition import LIBRARY_PATH, from_library
from exactlyonce.stores.cosmos.replies import answered_at
from exactlyonce.values.lifetimes import AHEAD, CLOCK_TOLERANCE, Retention
from spark_jobs.job.configuration import Account, Job, invalid
from spark_jobs.job.exits import AccountError, UnsafeError

CONNECT_SECONDS: Final = 5
READ_SECONDS: Final = 6
"""Seconds that one send waits for its reply: the service gives an operation 5 s."""

LARGEST_SKEW: Final = 300
"""Most seconds by which this machine's clock may differ from the account's."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """The service's time and the ages by which a job judges, as of its beginning.

    Attributes:
        now: the service's time, in seconds since 1970: ages are judged by it, since it also gives `_ts`.
        kept: age from which clean-up deletes records of a commit.
        judged: age up to which no record of a commit can have been deleted. Less than `kept` after a change.
        arrival: greatest age of a message that a consumer can have processed, if it refuses older ones.
        whole: whether the job file names all entity types of the application.
    """

    now: int
    kept: timedelta
    judged: timedelta
    arrival: timedelta
    whole: bool = True

    @classmethod
    def of(cls, now: float, retention: Retention, *, whole: bool = True) -> Self:
        """The ages that follow from a retention at this time, in seconds since 1970. `whole` as the attribute."""
        present = datetime.fromtimestamp(now, timezone.utc)
        kept, judged = retention.kept(present), retention.judged(present)
        arrival = max(retention.current, retention.previous or retention.current) - AHEAD - CLOCK_TOLERANCE
        return cls(int(now), kept, judged, max(arrival, timedelta(0)), whole)


@contextmanager
def connected(account: Account) -> Iterator[CosmosClient]:
    """A client for a `with` block. Its own retries are off: `pace.insist` retries.

    Raises:
        AccountError: the account cannot be reached, or refuses; also from within the block.
        ConfigurationError: a resource is absent; also from within the block.
    """
    identity = credential(account)
    silence_health_checks()
    try:
        with CosmosClient(
            account.endpoint,
            identity,
            consistency_level="Eventual",
            connection_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            retry_total=0,
            retry_connect=0,
            retry_read=0,
            retry_throttle_total=1,  # 0 means the default of 9 to it.
        ) as client:
            yield client
    except AzureError as error:
        raise refusal(error, f"the account {account.endpoint}") from None  # Its text may quote what was sent.
    finally:
        if not isinstance(identity, str):
            identity.close()


def silence_health_checks() -> None:
    """Keep the SDK's checks of regions out of the log of this process.

    A client makes them in the background, and logs a trace where it is closed meanwhile, as short-lived ones are. A region that
    does not answer shows in requests, too.
    """
    logging.getLogger("azure.cosmos._GlobalEndpointManager").setLevel(logging.CRITICAL)


def credential(account: Account) -> str | DefaultAzureCredential | ClientSecretCredential:
    """The account key, a service principal, or the identity of this machine."""
    if account.key:
        return account.key
    if account.tenant_id and account.client_id and account.client_secret:
        return ClientSecretCredential(account.tenant_id, account.client_id, account.client_secret)
    return DefaultAzureCredential(managed_identity_client_id=account.client_id)


def refusal(error: AzureError, what: str) -> ExactlyOnceError:
    """An error of the SDK as an error for the operator; `what` names the resource, such as "the container 'games'"."""
    if isinstance(error, CosmosHttpResponseError | CosmosBatchOperationError):
        return refused(error.status_code, error.sub_status or 0, what)
    if isinstance(error, ClientAuthenticationError):
        return AccountError(
            f"There is no identity for the request of {what}: give the job a service principal (AZURE_TENANT_ID, "
            "AZURE_CLIENT_ID, AZURE_CLIENT_SECRET), or its machines a managed identity; or set COSMOS__accountKey for the "
            "local Cosmos."
        )
    return AccountError(
        f"No answer to the request for {what} ({type(error).__name__}): check the endpoint and the network."
    )


def refused(status: int | None, substatus: int, what: str) -> ExactlyOnceError:
    """A refusal by the account as an error for the operator; `what` as for `refusal`."""
    both = f"{status}/{substatus}"
    match status:
        case 401:
            return AccountError(
                f"The account refuses the key or identity when asked for {what} ({both}): check COSMOS__accountKey, or, "
                "without one, that the identity belongs to the account's tenant; check this machine's clock, too."
            )
        case 403:
            return AccountError(
                f"The account forbids {what} ({both}): give the identity the data-plane role 'Cosmos DB Built-in Data "
                "Reader' (audit) or 'Contributor' (clean-up) on the database, and let the pool's network through."
            )
        case 404:
            return ConfigurationError(
                f"There is no such thing as {what} ({both}): correct its name in the job file, or create it."
            )
        case _:
            return AccountError(f"The account answered {both} when asked for {what}: run the job again later.")


def ready(job: Job, account: Account, clock: Callable[[], float] = time.time) -> Beginning:
    """Check the account against the job file, before the job reads anything.

    Args:
        clock: this machine's, in seconds since 1970.

    Returns:
        The time of the account's server, and the retention of the application.

    Raises:
        AccountError: the account cannot be reached, or refuses.
        ConfigurationError: names every container that is absent or has another partition key, or every contradiction
            between the file and the application.
        UnsafeError: this machine's clock differs by more than five minutes from the server's.
    """
    with connected(account) as client:
        database = client.get_database_client(job.database)
        now = server_now(database)
        if problems := list(_problems(database, job)):
            raise invalid("The containers are not what the job file says", problems)
        application = _owner_of(database, job)
    require_clock(now, clock())
    whole = {kind.type for kind in application.types} <= {entity.type for entity in job.entities}
    return Beginning.of(now, application.retention, whole=whole)


def server_now(database: DatabaseProxy) -> float:
    """The time of the server that answered, in seconds since 1970. Its resolution is one second.

    Raises:
        AccountError: the database cannot be read, or the reply has no date.
        ConfigurationError: there is no such database.
    """
    try:
        now = answered_at(database.read().get_response_headers())
    except AzureError as error:
        raise refusal(error, f"the database {database.id!r}") from None
    if now is None:
        raise AccountError(
            "The account's reply has no date, so the job cannot judge ages. Is there a proxy in between?"
        )
    return now


def require_clock(server: float, local: float) -> None:
    """Raise `UnsafeError` if two clocks, in seconds since 1970, differ by more than five minutes.

    Ages are judged by the server's clock; but so large a difference means that one of the two is wrong.
    """
    if abs(server - local) > LARGEST_SKEW:
        raise UnsafeError(
            f"This machine's clock is {abs(server - local) / 60:.0f} minutes {'behind' if server > local else 'before'} the "
            "account's: set it. The job cannot judge ages while one of the two is wrong."
        )


def _problems(database: DatabaseProxy, job: Job) -> Iterable[str]:
    places = {place.container: (place.partition_key, f"of entity {place.type!r}") for place in job.entities}
    places[job.library] = ((LIBRARY_PATH,), "of the library")
    for container, (expected, owner) in places.items():
        try:
            actual = tuple(database.get_container_client(container).read()["partitionKey"]["paths"])
        except CosmosResourceNotFoundError:
            yield f"there is no container {container!r} {owner} in database {database.id!r}: correct its name, or create it"
            continue
        except CosmosHttpResponseError as error:
            raise refusal(error, f"the container {container!r}") from None
        if actual != expected:
            yield (
                f"container {container!r} {owner} has the partition key {', '.join(actual)}, but the job file says "
                f"{', '.join(expected)}: correct partition_key"
            )


def _owner_of(database: DatabaseProxy, job: Job) -> Application:
    """The job's application.

    Raises:
        AzureError: the account refuses, or does not answer.
        ConfigurationError: there is no application, or the job file contradicts it.
    """
    try:
        found = database.get_container_client(job.library).read_item(KIND, KIND)
    except CosmosResourceNotFoundError:
        raise ConfigurationError(
            f"Container {job.library!r} names no application, and so no retention. Correct `library` in the job file; or start "
            "the application once, which writes both into it."
        ) from None
    try:
        application = read_application(from_library(dict(found)))
    except StoredDataError as error:
        raise ConfigurationError(str(error)) from None
    if problems := [*_contradictions(application, job)]:
        raise invalid(f"The job file contradicts application {application.name!r}", problems)
    return application


def _contradictions(application: Application, job: Job) -> Iterator[str]:
    types = [OwnedType(entity.type, entity.container, entity.partition_key) for entity in job.entities]
    yield from application.contradicted_by(types)
    for kind in types:
        if application.place_of(kind.type) is None:
            known = ", ".join(repr(known.type) for known in application.types) or "none"
            yield f"There is no entity type {kind.type!r}; there are: {known}. Correct `type`, or start the application once."
