"""The sender: sends messages from outside of handlers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from exactlyonce.attempt import key_of
from exactlyonce.drivers.publisher import Publisher
from exactlyonce.drivers.runtime import Runtime
from exactlyonce.effects.publish import PUBLISHED, Publish
from exactlyonce.errors import TryAgainLater
from exactlyonce.handling.messages import encode
from exactlyonce.handling.routes import Routes
from exactlyonce.hosting.claim_checks import ClaimChecks
from exactlyonce.records.outputs import Output
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.identity import message_key


@dataclass(frozen=True)
class Sender:
    """Sends messages of registered types under ids that its caller gives.

    Attributes:
        publisher: sends to the destinations' queues.
        routes: checks destinations and sizes.
        claims: writes data that is too large for its queue to a blob.
        runtime: time, and the observer.
    """

    publisher: Publisher
    routes: Routes
    claims: ClaimChecks
    runtime: Runtime

    async def send(
        self, destination: str, message: object, message_id: str, source: str, time: datetime | None = None
    ) -> None:
        """As `ExactlyOnce.send`, which documents it."""
        stable = destination in self.routes.stable
        if time is None and stable:
            raise ValueError(
                f"Message {message_key(source, message_id)} for {destination!r} has no time=. A destination with "
                "stable_time=True needs the time when the message came about, the same in every copy."
            )
        if time is None:
            time = self.runtime.clock.now()
        elif time.utcoffset() is None:
            raise ValueError(f"The time of message {message_key(source, message_id)} has no time zone. Give it one.")
        name, data = encode(message)
        session = self.routes.session(destination, message)
        envelope = Envelope(source, message_id, name, data, time, extensions=session)
        if stable:
            envelope = envelope.with_stable_time()
        with self.runtime.observer_slot.sending(destination, key_of(envelope)) as trace:
            await self._send(destination, envelope.with_trace(trace))

    async def _send(self, destination: str, envelope: Envelope) -> None:
        wire = envelope.to_json()
        if self.routes.blobs is not None and self.routes.is_too_large(destination, wire.size):
            wire = (await self.claims.left(envelope)).to_json()
        wire = Envelope.read(wire.text).to_json()  # An envelope that its receiver could not read must not be sent.
        self.routes.check(destination, wire.size)
        output = Output(key_of(envelope), destination, wire)
        if await self.publisher.publish(Publish((output,))) is not PUBLISHED:
            raise TryAgainLater(f"Message {key_of(envelope)} may not have been sent. Send it again under the same id.")
