"""The identity with which a process reaches Azure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from azure.identity.aio import DefaultAzureCredential


def default_credential(client_id: str | None = None) -> DefaultAzureCredential:
    """The process's own identity. The caller closes the credential.

    Args:
        client_id: the client id of a user-assigned managed identity; None for the identity that Azure chooses.
    """
    # Imported here: the import is a fifth of every start, and keys or connection strings need none.
    from azure.identity.aio import DefaultAzureCredential  # noqa: PLC0415

    return DefaultAzureCredential(managed_identity_client_id=client_id)
