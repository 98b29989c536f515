"""The identity with which a process reaches Azure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from azure.identity.aio import DefaultAzureCredential


def default_credential(client_id: str | None = None) -> DefaultAzureCredential:
    """The process's own identity. Whoever asks for it closes it.

    Args:
        client_id: of a user-assigned managed identity; without one it is the one that Azure finds by itself.
    """
    # Imported here: where keys or connection strings are used, it would be a fifth of every start.
    from azure.identity.aio import DefaultAzureCredential  # noqa: PLC0415

    return DefaultAzureCredential(managed_identity_client_id=client_id)
