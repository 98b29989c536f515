"""Claim checks: data too large for a queue travels as a blob, and the message carries the blob's address.

The envelope attribute is the "Dataref" extension of CloudEvents; the pattern is the claim check of "Enterprise Integration
Patterns".
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from exactlyonce.effects.library import KEPT, WriteOnce
from exactlyonce.errors import MalformedMessage, OutputTooLarge, TryAgainLater
from exactlyonce.records.blobs import CLAIM_CHECKS, MAX_BLOB_BYTES, Blob
from exactlyonce.stores.blobs.port import AsyncBlobs
from exactlyonce.values.envelope import MOST_NESTED, Envelope, key_of
from exactlyonce.values.frozen_json import Json, read_json

_NOTHING: Final = Json("null")
_LONGEST_NAME: Final = 1024
"""Most characters in the name of a blob."""


@dataclass(frozen=True)
class ClaimChecks:
    """Moves message data into blobs and back; without a container there is no data to move."""

    blobs: AsyncBlobs | None

    def claims(self, envelope: Envelope) -> bool:
        """Whether the data of a message is in a blob only. A CloudEvent may also have both, with the same content."""
        return envelope.reference is not None and envelope.data == _NOTHING

    async def redeemed(self, envelope: Envelope) -> Envelope:
        """The message with its data. Only blobs of the application's own container are fetched.

        Raises:
            MalformedMessage: the address is outside of the container, or the blob does not exist, is not JSON, or is too large.
            TryAgainLater: the blob could not be read.
        """
        blobs, name = self._place(envelope)
        subject = f"Message {key_of(envelope)}: its data, the blob {name!r},"
        content = await blobs.read(name, MAX_BLOB_BYTES)
        if content is None:
            raise MalformedMessage(
                f"{subject} does not exist. It was written before the message, so it was deleted: restore it, and let rules "
                "that delete blobs keep them for longer than messages may wait."
            )
        if len(content) > MAX_BLOB_BYTES:
            raise MalformedMessage(f"{subject} is too large; at most {MAX_BLOB_BYTES} bytes are read.")
        try:
            return envelope.with_data(Json.of(read_json(content, nesting=MOST_NESTED)))
        except (ValueError, RecursionError) as error:
            raise MalformedMessage(f"{subject} is not JSON. {error}") from None

    async def left(self, envelope: Envelope) -> Envelope:
        """Write the data of a message to a blob, the same blob for the same message; return the message with the blob's
        address.

        The blob's name is a hash of the message's key and data: a different message sent under the same id by mistake does not
        replace the first data.

        Raises:
            OutputTooLarge, TryAgainLater: the data is too large for a blob, or the blob may not have been written.
            MalformedMessage: even without data the message could not be read.
        """
        assert self.blobs is not None  # noqa: S101  # Callers check for a container.
        content = envelope.data.text.encode()
        if len(content) > MAX_BLOB_BYTES:
            raise OutputTooLarge(
                f"The data of message {key_of(envelope)} has {len(content)} bytes; a blob may have {MAX_BLOB_BYTES}. Send less."
            )
        digest = hashlib.sha256(Json.of([key_of(envelope), envelope.data.digest]).text.encode()).hexdigest()
        name = f"{CLAIM_CHECKS}/_sent/{digest}"
        referring = Envelope.read(envelope.by_reference(f"{self.blobs.address}/{name}").to_json().text)
        if await self.blobs.perform(WriteOnce((Blob(name, content, "application/json"),))) is not KEPT:
            raise TryAgainLater(
                f"The data of message {key_of(envelope)} may not have been written. Send it again under the same id."
            )
        return referring

    def _place(self, envelope: Envelope) -> tuple[AsyncBlobs, str]:
        """The container, and the name of the blob in it."""
        if self.blobs is None:
            raise MalformedMessage(
                f"Message {key_of(envelope)} has its data in a blob (dataref), and this application has no container for "
                "blobs. Set EXACTLYONCE__blobContainer to the sender's container."
            )
        base, address = f"{self.blobs.address}/", envelope.reference or ""
        name = unquote(address.removeprefix(base))
        # The address must be exactly as the library writes it: no way up, no query, no other encoding.
        plain = len(name) <= _LONGEST_NAME and all(part.strip(".") for part in name.split("/"))
        if not address.startswith(base) or not plain or address != f"{base}{quote(name)}":
            raise MalformedMessage(
                f"Message {key_of(envelope)} has its data (dataref) at an address outside of {self.blobs.address}, this "
                "application's container. Other addresses are never fetched. If the sender is yours, give both one container."
            )
        return self.blobs, name
