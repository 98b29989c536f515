"""Exactly-once message processing for Azure Functions and Cosmos DB, without distributed transactions.

Business code imports this package, which loads no Azure library; single errors are in `exactlyonce.errors`. Applications are
put together with `exactlyonce.hosting`, and tested with `exactlyonce.testing`.
"""

import exactlyonce.telemetry.notices  # noqa: F401  # Logs the notices of `handling`, which has no log.
from exactlyonce.errors import (
    ConfigurationError,
    ExactlyOnceError,
    HandlerError,
    MessageError,
    StoredDataError,
    TryAgainLater,
)
from exactlyonce.handling.calls import Api, Reply
from exactlyonce.handling.context import Context
from exactlyonce.handling.entities import Entity
from exactlyonce.handling.messages import EntityKey, message
from exactlyonce.handling.routes import Destination
from exactlyonce.protocols.colocated import Colocated
from exactlyonce.protocols.outbox.protocol import Outbox
from exactlyonce.protocols.resequencer.gaps import Rebuild
from exactlyonce.protocols.resequencer.protocol import Resequencer
from exactlyonce.protocols.stream.protocol import VersionStream
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import read_json

__version__ = "0.1.0"

__all__ = [
    "Api",
    "Colocated",
    "ConfigurationError",
    "Context",
    "Destination",
    "Entity",
    "EntityKey",
    "Envelope",
    "ExactlyOnceError",
    "HandlerError",
    "MessageError",
    "Outbox",
    "Rebuild",
    "Reply",
    "Resequencer",
    "StoredDataError",
    "TryAgainLater",
    "VersionStream",
    "message",
    "read_json",
]
