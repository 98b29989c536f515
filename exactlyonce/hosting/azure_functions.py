"""From what a trigger delivers to envelopes: the only import of `azure.functions`."""

from __future__ import annotations

import azure.functions as func

from exactlyonce.envelope import Envelope
from exactlyonce.errors import MalformedMessage
from exactlyonce.hosting.adapters import Adapter


def envelope_of(message: func.QueueMessage, adapter: Adapter | None = None) -> Envelope:
    """Read a queue message.

    Raises:
        MalformedMessage: naming the queue message, since the message's own id may not be known.
    """
    try:
        return (adapter or Envelope.read)(message.get_body())
    except MalformedMessage as error:
        raise MalformedMessage(f"Queue message {message.id}: {error}") from error
