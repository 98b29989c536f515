"""The part of an application that makes calls to other services."""

from __future__ import annotations

from exactlyonce.handling.calls import Api
from exactlyonce.handling.routes import Destination
from exactlyonce.hosting.deliveries.failures import told
from exactlyonce.hosting.deliveries.triggers import Delivered
from exactlyonce.hosting.wiring import Parts


class ServiceCalls:
    """An application whose handlers call other services."""

    _parts: Parts
    _destinations: tuple[Destination, ...]

    @property
    def destinations(self) -> tuple[Destination | Api, ...]:
        """Where handlers may send to, and the services that they may call."""
        apis = self._parts.caller.apis
        return tuple(apis.get(one.name, one) for one in self._destinations)

    @told
    async def call(self, message: Delivered) -> None:
        """Make the call that a handler committed with `context.call`. For the trigger on the queue of an `Api`.

        Returning acknowledges it: its reply was sent, or the call was sent to its queue once more, to be tried again later.

        Args:
            message: as the trigger delivers it.

        Raises:
            TryAgainLater: a queue did not take what was sent. The call comes again, under the same idempotency key.
            InvalidMessage, MalformedMessage: the message is no call.
            ConfigurationError: this application has no such `Api`, or no destination for the reply.
        """
        await self._parts.caller.take(message)

    @told
    async def settle_call(self, message: Delivered) -> None:
        """Decide about a call that its queue gave up on: it returns to its queue while its key is known, and is answered then.

        For triggers on `<queue>-poison`; with Service Bus on `<queue>/$DeadLetterQueue`. The reply has the outcome "unknown".

        Args:
            message: as the trigger delivers it.

        Raises:
            As `call` does; the message stays. A call to an `Api` that this process does not know is answered once its key is
            known no more.
        """
        await self._parts.caller.settle(message)
