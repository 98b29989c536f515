"""Links that receive from a session: they open when they have it."""

from __future__ import annotations

from typing import Final

from proton import Delivery, Described, Link, symbol

from local_service_bus.amqp.consumer import Consumer
from local_service_bus.amqp.service import Service
from local_service_bus.amqp.steps import Client, Step
from local_service_bus.amqp.wire import close_with
from local_service_bus.broker.messages import SessionLock
from local_service_bus.broker.queue import MessageQueue
from local_service_bus.broker.refusals import SESSION_CANNOT_BE_LOCKED, TIMEOUT, RefusedError

SESSION_FILTER: Final = "com.microsoft:session-filter"
LOCKED_UNTIL: Final = "com.microsoft:locked-until-utc"
OPERATION_TIMEOUT: Final = "com.microsoft:timeout"
PATIENCE: Final = 60.0
"""Seconds for which a client waits for a free session, unless it says otherwise."""

_TICKS_OF_1970: Final = 621_355_968_000_000_000
"""Points in time as .NET counts them: ticks of 100 ns since the year 1."""
_TICKS_OF_A_SECOND: Final = 10_000_000


class AcceptingSession:
    """A link that waits for its session, and then receives from it.

    Attributes:
        step: To begin with.
        closed: True once the link has ended, from whichever side.
    """

    def __init__(
        self, service: Service, client: Client, link: Link, queue: MessageQueue, asked: Described | str | None
    ) -> None:
        self.link = link
        self.queue = queue
        self.client = client
        wanted = asked.value if isinstance(asked, Described) else asked
        self.wanted = None if wanted is None else str(wanted)
        self._asked = asked
        self.step = _Accept(self)
        self.session: SessionLock | None = None
        self.closed = False
        self._service = service
        self._consumer: Consumer | None = None

    def on_delivery(self, delivery: Delivery) -> None:
        """Settle as the client says."""
        if self._consumer is not None:
            self._consumer.on_delivery(delivery)

    def on_closed(self) -> None:
        """Let the session go, or wait for it no longer."""
        self.closed = True
        self._service.leave(self.queue.address, self)
        if self._consumer is not None:
            self._consumer.on_closed()
        elif self.session is not None:
            self.queue.sessions.close(self.session)

    def serve(self) -> bool:
        """Take a session that has become free."""
        self.session = self.queue.sessions.accept_next()
        if self.session is not None:
            self._service.leave(self.queue.address, self)
            self.open(self.session)
        return self.session is not None

    def rest(self) -> None:
        """Nothing to do: it has no credit yet."""

    def wait(self) -> None:
        """Wait for a session, until patience ends."""
        self._service.wait(self.queue.address, self)
        given = (self.link.remote_properties or {}).get(symbol(OPERATION_TIMEOUT))
        self._service.after(PATIENCE if given is None else given / 1000, self._give_up)

    def open(self, session: SessionLock) -> None:
        """Open the link, and tell which session it has."""
        filters = self.link.source.filter
        filters.clear()
        told: Described | str = session.session_id
        if isinstance(self._asked, Described):  # As the client asks: Go reads the one form only, JavaScript the other.
            told = Described(self._asked.descriptor, told)
        filters.put_object({symbol(SESSION_FILTER): told})
        ticks = _TICKS_OF_1970 + round(session.until * _TICKS_OF_A_SECOND)
        self.link.properties = {symbol(LOCKED_UNTIL): ticks}
        self.link.open()
        self._consumer = Consumer(self._service, self.client, self.link, self.queue, session=session)

    def _give_up(self) -> None:
        if self._consumer is None and self.client.alive and not self.closed:
            self.on_closed()
            close_with(self.link, RefusedError(TIMEOUT, f"{self.queue.address}: no session with messages became free."))


class _Accept(Step):
    def __init__(self, accepting: AcceptingSession) -> None:
        super().__init__(accepting.client, "accept_session", accepting.queue.address)
        self._accepting = accepting

    def act(self) -> None:
        accepting = self._accepting
        if accepting.closed:  # The client did not wait so long.
            return
        wanted, sessions = accepting.wanted, accepting.queue.sessions
        accepting.session = sessions.accept_next() if wanted is None else sessions.accept(wanted)
        if accepting.session is None and wanted is not None:
            raise RefusedError(
                SESSION_CANNOT_BE_LOCKED, f"{self.entity}: somebody else holds session {wanted!r}; accept another."
            )

    def answer(self, refusal: RefusedError | None) -> None:
        accepting = self._accepting
        if accepting.closed:
            return
        if refusal is not None:
            accepting.on_closed()
            close_with(accepting.link, refusal)
        elif accepting.session is None:
            accepting.wait()
        else:
            accepting.open(accepting.session)
