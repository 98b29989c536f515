"""Azure Service Bus: the queues and topics of one namespace, which share their names; so an address is the name of either.

Messages have the ids of their outputs, so a broker that drops copies drops those of a send that was repeated. Nothing rests on
that. Their session is the `partitionkey` of their envelope, which queues without sessions ignore.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from typing import Any, Final

from azure.core.credentials_async import AsyncTokenCredential
from azure.servicebus import ServiceBusMessage, parse_connection_string
from azure.servicebus.aio import ServiceBusClient

from exactlyonce.credentials import default_credential
from exactlyonce.effects.effect import UNKNOWN
from exactlyonce.effects.publish import PUBLISHED
from exactlyonce.errors import ConfigurationError, TryAgainLater
from exactlyonce.records.outputs import Output
from exactlyonce.records.places import RECEIVER
from exactlyonce.transports.port import SendReply
from exactlyonce.transports.service_bus.binding import written
from exactlyonce.transports.service_bus.limits import MAX_BYTES
from exactlyonce.transports.service_bus.link import FAILURES, Link, refusal

HEADER_BYTES: Final = 8 * 1024
"""Room in a message for all that is not in its envelope: names of attributes are longer there, and Service Bus adds its own."""

DELIVERY_LIMIT: Final = timedelta(days=7)

_LONGEST_ID: Final = 128
"""UTF-16 units, which are what the service counts, that the id of a message, and that of a session, may have."""

_SETTINGS: Final[dict[str, Any]] = {
    # The SDK's defaults wait up to two minutes before they repeat anything, and without end for a reply. It repeats once, often
    # by the link that failed; so does a `Link`, by a new one, and both have to fit a time limit.
    "retry_total": 1,
    "retry_backoff_factor": 0.2,
    "retry_backoff_max": 5,
    "try_timeout": 10,
}


def is_connection_string(text: str) -> bool:
    """Whether a text is a connection string of a Service Bus namespace, and not of one queue in it."""
    try:
        return not parse_connection_string(text).entity_path
    except ValueError:
        return False


class ServiceBusTransport:
    """Sends to the queues and topics of one namespace, which have to exist.

    Args:
        namespace: a connection string, or the namespace's host name (`….servicebus.windows.net`).
        credential: for a host name; its owner closes it. Without one it is a `DefaultAzureCredential` of its own.
        delivery_limit: time after which an undelivered message expires, from when it appears. Clean-up's retention has to
            exceed it.
        message_bytes: what the namespace lets a message have, its header included.
        time_limit: seconds that one call may take, its repetitions included.
        now: the time of day, for messages that appear later.
    """

    def __init__(
        self,
        namespace: str,
        credential: AsyncTokenCredential | None = None,
        *,
        delivery_limit: timedelta = DELIVERY_LIMIT,
        message_bytes: int = MAX_BYTES,
        time_limit: float = 30.0,
        now: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
    ) -> None:
        self._namespace = namespace
        self._credential = credential
        self._own_credential: AsyncTokenCredential | None = None
        self._lifetime = timedelta(seconds=math.ceil(delivery_limit.total_seconds()))  # The SDK cuts fractions off.
        self._message_bytes = message_bytes
        self._time_limit = time_limit
        self._now = now
        self._client: ServiceBusClient | None = None
        self._links: dict[str, Link] = {}

    @property
    def max_bytes(self) -> int:
        return self._message_bytes - HEADER_BYTES

    async def send(self, address: str, outputs: tuple[Output, ...]) -> SendReply:
        if not outputs:
            return PUBLISHED
        arrived = await self._link(address).send([self._message(output) for output in outputs])
        return PUBLISHED if arrived else UNKNOWN

    async def verify(self, addresses: Iterable[str]) -> None:
        """See whether the namespace takes messages for all these addresses. Nothing is sent.

        Raises:
            ConfigurationError: naming all that an operator has to change.
            TryAgainLater: nothing is known to be wrong, but the namespace could not be asked.
        """
        names = sorted(set(addresses))
        found = await asyncio.gather(*(self._examined(name) for name in names))
        if problems := [one for one in found if isinstance(one, str)]:
            raise ConfigurationError(
                "Service Bus is not set up as it has to be:\n" + "\n".join(f"- {one}" for one in problems)
            )
        for name, error in zip(names, found, strict=True):
            if isinstance(error, Exception):
                raise TryAgainLater(
                    f"Service Bus could not be asked for {name!r} ({type(error).__name__}). If this stays, check the "
                    "connection's fullyQualifiedNamespace and the network."
                ) from error

    async def close(self) -> None:
        """Close the links, the client and the credential that was made here. A later use opens them again."""
        links, self._links = self._links, {}
        client, self._client = self._client, None
        credential, self._own_credential = self._own_credential, None
        await asyncio.gather(*(link.close() for link in links.values()))
        if client is not None:
            with suppress(*FAILURES):
                await client.close()
        if credential is not None:
            await credential.close()

    async def _examined(self, address: str) -> str | Exception | None:
        """What is wrong with an address; an error if it did not answer; None if nothing is."""
        try:
            most = await self._link(address).most_bytes()
        except FAILURES as error:
            return refusal(address, error) or error
        if most < self._message_bytes:
            return (
                f"{address!r} takes messages of {most} bytes, but EXACTLYONCE__maxMessageBytes says {self._message_bytes}: "
                "set it to what the namespace's tier takes."
            )
        return None

    def _message(self, output: Output) -> ServiceBusMessage:
        content = written(output.envelope)
        properties: dict[Any, Any] = dict(content.properties)
        delay = timedelta(seconds=output.delay)
        return ServiceBusMessage(
            content.body,
            content_type=content.type,
            application_properties=properties,
            message_id=_short(output.id),
            session_id=_session(output),
            time_to_live=self._lifetime,
            scheduled_enqueue_time_utc=self._now() + delay if delay else None,
        )

    def _link(self, address: str) -> Link:
        if self._client is None:
            self._client = self._open()
        if address not in self._links:
            self._links[address] = Link(self._client, address, self._time_limit)
        return self._links[address]

    def _open(self) -> ServiceBusClient:
        if "=" in self._namespace:
            return ServiceBusClient.from_connection_string(self._namespace, **_SETTINGS)
        credential = self._credential
        if credential is None:
            credential = self._own_credential = default_credential()
        return ServiceBusClient(self._namespace, credential, **_SETTINGS)


def _session(output: Output) -> str | None:
    key = output.envelope.value.get(RECEIVER)
    return _short(key) if isinstance(key, str) and key else None


def _short(name: str) -> str:
    """A name as it is, or its hash if the service takes none of that length: the same every time."""
    length = len(name.encode("utf-16-le")) // 2
    return name if length <= _LONGEST_ID else hashlib.sha256(name.encode()).hexdigest()
