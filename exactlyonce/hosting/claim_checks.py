"""The data of messages that are too large for their queue: it travels as a blob, and its address in the message.

That is the "Dataref" extension of CloudEvents, and the claim check of "Enterprise Integration Patterns".
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from exactlyonce.attempt import key_of
from exactlyonce.blobs.port import AsyncBlobs
from exactlyonce.effects.blobs import KEPT, WriteOnce
from exactlyonce.errors import MalformedMessage, OutputTooLarge, TryAgainLater
from exactlyonce.records.blobs import CLAIM_CHECKS, MAX_BLOB_BYTES, Blob
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json

_NOTHING: Final = Json("null")
_LONGEST_NAME: Final = 1024
"""Characters that the service lets a name have."""


@dataclass(frozen=True)
class ClaimChecks:
    """Takes data out of messages and puts it back.

    Attributes:
        blobs: where the data is; None if there is no container for it.
    """

    blobs: AsyncBlobs | None

    def claims(self, envelope: Envelope) -> bool:
        """Whether the data of a message is elsewhere. CloudEvents may have both, and then both are the same."""
        return envelope.reference is not None and envelope.data == _NOTHING

    async def redeemed(self, envelope: Envelope) -> Envelope:
        """The message with its data. Only blobs of the application's own container are ever fetched.

        Raises:
            MalformedMessage: the address is another's, there is no such blob, or what is there is no JSON or too large.
            TryAgainLater: the blob could not be read.
        """
        blobs, name = self._place(envelope)
        told = f"Message {key_of(envelope)}: its data, the blob {name!r},"
        content = await blobs.read(name, MAX_BLOB_BYTES)
        if content is None:
            raise MalformedMessage(
                f"{told} does not exist. It was there before the message was sent, so somebody has deleted it: restore it, or "
                "let the rule that deletes blobs leave them alone for longer than messages may wait."
            )
        if len(content) > MAX_BLOB_BYTES:
            raise MalformedMessage(f"{told} is too large; at most {MAX_BLOB_BYTES} bytes are read.")
        try:
            return envelope.with_data(Json.of(json.loads(content)))
        except (ValueError, RecursionError) as error:
            raise MalformedMessage(f"{told} is not JSON ({type(error).__name__}).") from None

    async def left(self, envelope: Envelope) -> Envelope:
        """Write the data of a message as a blob; the message that refers to it. The same message gives the same again.

        The name is made of the message's key and of its data: whoever sends another message under the same id by mistake does
        not exchange what the first one refers to.

        Raises:
            OutputTooLarge: the data is too large for a blob, too.
            MalformedMessage: even without its data the message could not be read.
            TryAgainLater: whether the blob was written is not known.
        """
        assert self.blobs is not None  # noqa: S101  # Without a container no message is too large for its queue only.
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
                f"Whether the data of message {key_of(envelope)} was written is not known. Send it again under the same id."
            )
        return referring

    def _place(self, envelope: Envelope) -> tuple[AsyncBlobs, str]:
        """The container, and the name of the blob in it."""
        if self.blobs is None:
            raise MalformedMessage(
                f"Message {key_of(envelope)} has its data elsewhere (dataref), and this application has no container for "
                "blobs. Name the sender's in EXACTLYONCE__blobContainer."
            )
        base, address = f"{self.blobs.address}/", envelope.reference or ""
        name = unquote(address.removeprefix(base))
        # Not a byte may mean anything but a name: no way up, no query, nothing that is written otherwise than we write it.
        plain = len(name) <= _LONGEST_NAME and all(part.strip(".") for part in name.split("/"))
        if not address.startswith(base) or not plain or address != f"{base}{quote(name)}":
            raise MalformedMessage(
                f"Message {key_of(envelope)} has its data (dataref) at an address that is no blob of {self.blobs.address}, the "
                "container that this application is configured with. Other addresses are never fetched. If the sender is "
                "yours, give both the same container."
            )
        return self.blobs, name
