"""A document belongs to one protocol: another one would not know its duplicates."""

from __future__ import annotations

from exactlyonce.errors import ConfigurationError
from exactlyonce.records.ledger import Ledger, Protocol
from exactlyonce.values.identity import EntityRef


def require_own(entity: EntityRef, ledger: Ledger | None, protocol: Protocol) -> None:
    """Refuse an entity that another protocol has processed. Within the outbox the presets may be exchanged freely.

    Args:
        entity: that was loaded.
        ledger: of its document. None and an empty one, as an absent entity has, belong to nobody.
        protocol: that its type is configured for.

    Raises:
        ConfigurationError: it belongs to another protocol; nothing was changed.
    """
    if ledger is not None and ledger.protocol != protocol and ledger != Ledger():
        raise ConfigurationError(
            f"Entity {entity} was processed by the protocol {ledger.protocol!r}; its type is configured for {protocol!r}, "
            "which would not know its duplicates. Nothing was changed. Go back to the strategy it had; or give the new one a "
            "container of its own, and let messages carry the state over."
        )
