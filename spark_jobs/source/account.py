"""The account, as jobs reach it: a client, what its refusals mean, the server's clock, and whether containers are as told.

A job reads with the consistency level Eventual and without session tokens, on every account: a scan of everything has no
write of its own to wait for. What it reads may therefore lag behind by what a replica lags behind, and two pages may come
from two replicas. Jobs allow for that: nothing younger than the grace is judged, what looks wrong is read again, and
everything is deleted on condition of the ETag that was read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from azure.core.exceptions import AzureError, ClientAuthenticationError
from azure.cosmos import ContainerProxy, CosmosClient, DatabaseProxy
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError
from azure.identity import ClientSecretCredential, DefaultAzureCredential

from exactlyonce.errors import ConfigurationError, ExactlyOnceError
from exactlyonce.stores.cosmos.layout import LIBRARY_PATH
from exactlyonce.stores.cosmos.replies import answered_at
from spark_jobs.job.configuration import Account, Job
from spark_jobs.job.exits import AccountError, UnsafeError
from spark_jobs.source.application import Beginning, retention_of

CONNECT_SECONDS: Final = 5
READ_SECONDS: Final = 6
"""How long one send waits for its reply: the service gives an operation 5 s."""

LARGEST_SKEW: Final = 300
"""Seconds by which this machine's clock may differ from the account's."""


@contextmanager
def connected(account: Account) -> Iterator[CosmosClient]:
    """A client for the length of a `with` block. The SDK itself repeats next to nothing: `pacing.insist` does.

    Raises:
        AccountError: the account cannot be reached, or refuses; also from within the block.
        ConfigurationError: what is asked for is not there; also from within the block.
    """
    asker = credential(account)
    try:
        with CosmosClient(
            account.endpoint,
            asker,
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
        if not isinstance(asker, str):
            asker.close()


def credential(account: Account) -> str | DefaultAzureCredential | ClientSecretCredential:
    """Who asks: the key, a service principal, or the identity of this machine."""
    if account.key:
        return account.key
    if account.tenant_id and account.client_id and account.client_secret:
        return ClientSecretCredential(account.tenant_id, account.client_id, account.client_secret)
    return DefaultAzureCredential(managed_identity_client_id=account.client_id)


def refusal(error: AzureError, what: str) -> ExactlyOnceError:
    """What an error of the SDK means to the operator.

    Args:
        error: as it was raised.
        what: was asked for, such as "the container 'games'".
    """
    if isinstance(error, CosmosHttpResponseError | CosmosBatchOperationError):
        status = f"{error.status_code}/{error.sub_status or 0}"
        match error.status_code:
            case 401:
                return AccountError(
                    f"The account refuses the key or identity when asked for {what} ({status}): check COSMOS__accountKey, or, "
                    "without one, that the identity belongs to the account's tenant; check this machine's clock, too."
                )
            case 403:
                return AccountError(
                    f"The account forbids {what} ({status}): give the identity the data-plane role 'Cosmos DB Built-in Data "
                    "Reader' (audit) or 'Contributor' (clean-up) on the database, and let the pool's network through."
                )
            case 404:
                return ConfigurationError(
                    f"There is no such thing as {what} ({status}): correct the name in the job file, or create it."
                )
            case _:
                return AccountError(f"The account answered {status} when asked for {what}: run the job again later.")
    if isinstance(error, ClientAuthenticationError):
        return AccountError(
            f"There is no identity to ask for {what} with: give the job a service principal (AZURE_TENANT_ID, AZURE_CLIENT_ID, "
            "AZURE_CLIENT_SECRET), or its machines a managed identity; or set COSMOS__accountKey for the local Cosmos."
        )
    return AccountError(
        f"No answer to the request for {what} ({type(error).__name__}): check the endpoint and the network."
    )


def container_of(client: CosmosClient, database: str, container: str) -> ContainerProxy:
    """A container, without asking for it."""
    return client.get_database_client(database).get_container_client(container)


def ready(job: Job, account: Account, clock: Callable[[], float] = time.time) -> Beginning:
    """Check, before anything is read, that the account is what the job file says.

    Args:
        job: names the containers.
        account: says where.
        clock: this machine's, in seconds since 1970.

    Returns:
        The time of the account's server, and by which retention things are judged now.

    Raises:
        AccountError: the account cannot be reached, or refuses.
        ConfigurationError: naming every container that is absent, or that has another partition key than the file says; or
            all that the file says otherwise than the application does.
        UnsafeError: this machine's clock differs by more than five minutes from the server's.
    """
    with connected(account) as client:
        database = client.get_database_client(job.database)
        now = server_now(database)
        if problems := list(_problems(database, job)):
            raise ConfigurationError(
                "The containers are not what the job file says:\n" + "\n".join(f"- {one}" for one in problems)
            )
        retention = retention_of(database, job)
    require_clock(now, clock())
    return Beginning.of(now, retention)


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
            "The account's reply has no date, so that ages cannot be judged. Is there a proxy in between?"
        )
    return now


def require_clock(server: float, local: float) -> None:
    """Raise `UnsafeError` if two clocks, in seconds since 1970, differ by more than five minutes.

    Ages are judged by the server's; but a machine that is so far off says that something is wrong with one of them.
    """
    if abs(server - local) > LARGEST_SKEW:
        raise UnsafeError(
            f"This machine's clock is {abs(server - local) / 60:.0f} minutes {'behind' if server > local else 'before'} the "
            "account's: set it. Nothing is judged by age while one of them is wrong."
        )


def _problems(database: DatabaseProxy, job: Job) -> Iterable[str]:
    places = {place.container: (place.partition_key, f"of entity {place.type!r}") for place in job.entities}
    places[job.library] = ((LIBRARY_PATH,), "of the library")
    for container, (expected, owner) in places.items():
        properties = _properties(database, container)
        if properties is None:
            yield f"there is no container {container!r} {owner} in database {database.id!r}: correct its name, or create it"
            continue
        actual = tuple(properties["partitionKey"]["paths"])
        if actual != expected:
            yield (
                f"container {container!r} {owner} has the partition key {', '.join(actual)}, but the job file says "
                f"{', '.join(expected)}: correct partition_key"
            )


def _properties(database: DatabaseProxy, container: str) -> dict[str, Any] | None:
    try:
        return dict(database.get_container_client(container).read())
    except CosmosHttpResponseError as error:
        if error.status_code == 404:  # noqa: PLR2004
            return None
        raise refusal(error, f"the container {container!r}") from None
