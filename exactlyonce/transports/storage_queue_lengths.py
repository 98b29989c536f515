"""How many messages wait in the queues of a storage account."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Literal

from azure.core.exceptions import AzureError, HttpResponseError, ResourceNotFoundError
from azure.storage.queue.aio import QueueServiceClient

from exactlyonce.credentials import default_credential

Length = int | Literal["absent", "refused", "no answer"]
"""Messages in a queue, about; or why that is not known."""


async def lengths(account: str, client_id: str | None, names: Iterable[str]) -> AsyncIterator[tuple[str, Length]]:
    """The lengths of queues, by name.

    Args:
        account: a connection string, or the address of the queue service.
        client_id: of a user-assigned identity, for an address.
        names: of the queues.
    """
    credential = None
    if "=" in account:
        service = QueueServiceClient.from_connection_string(account, retry_total=0)
    else:
        credential = default_credential(client_id)
        service = QueueServiceClient(account, credential, retry_total=0)
    try:
        for name in names:
            yield name, await _length(service, name)
    finally:
        await service.close()
        if credential is not None:
            await credential.close()


async def _length(service: QueueServiceClient, name: str) -> Length:
    try:
        return (await service.get_queue_client(name).get_queue_properties()).approximate_message_count or 0
    except ResourceNotFoundError:
        return "absent"
    except HttpResponseError:
        return "refused"
    except AzureError:
        return "no answer"
