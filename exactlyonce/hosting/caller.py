"""The caller: takes calls from the queue of their `Api`, makes them, and sends their replies.

A call is made again until a final answer comes, under one idempotency key, with a growing delay between the tries. Between
tries the call waits in its queue: a try without a final answer sends the call there once more, so tries outlive the delivery
count of the host. Every copy of a call carries the time of the commit, and the lifetime of the key counts from then on,
although the service has not seen the key yet. So no try of any copy arrives after the service has forgotten the key.
"""

from __future__ import annotations

import asyncio
import codecs
import inspect
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from email.message import Message
from email.utils import parsedate_to_datetime
from itertools import islice
from random import Random
from typing import Any, Final
from urllib.parse import quote

from exactlyonce.drivers.observer import ObserverSlot
from exactlyonce.drivers.publisher import Publisher
from exactlyonce.effects.entity import PUBLISHED, Publish
from exactlyonce.errors import ConfigurationError, ExactlyOnceError, InvalidMessage, TryAgainLater
from exactlyonce.handling.calls import Api, Call, Credentials, read_call
from exactlyonce.handling.routes import Routes
from exactlyonce.hosting.deliveries.claim_checks import ClaimChecks
from exactlyonce.hosting.deliveries.triggers import Delivered, delivery_of, envelope_of
from exactlyonce.records.ledger import CALL_TYPE, TRIED, ReplyTo
from exactlyonce.records.outbox import Output
from exactlyonce.transports.http import Received, Request, Wire
from exactlyonce.values.envelope import Envelope, key_of
from exactlyonce.values.frozen_json import Json, is_json, read_json
from exactlyonce.values.raised import Show, causes_of, class_of, shown
from exactlyonce.values.round_trips import ApplicationsCode

# The content of a reply. A reply is committed: a lost part of the answer would be lost for ever.


_MARKS: Final = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
"""Byte order marks at the beginning of a body. A mark overrides the headers."""
_INFLATED: Final = frozenset({"", "identity", "gzip", "deflate", "br", "zstd"})
"""Encodings that the wire undoes, and names for no encoding."""


def content_of(received: Received, names: tuple[str, ...]) -> dict[str, Any]:
    """The properties of a reply that come from an answer; `names` are the headers that replies carry."""
    headers = {name: _text(received.headers[name.lower()]) for name in names if name.lower() in received.headers}
    kept: dict[str, Any] = {"status": received.status, "headers": headers, "body": None, "cut": received.body is None}
    if received.body:
        media_type = received.headers.get("content-type", "")
        encoding = received.headers.get("content-encoding", "").strip().lower()
        text = _decoded(received.body, media_type) if encoding in _INFLATED else None
        if text is None:
            kept |= {"body": received.body.decode(errors="backslashreplace"), "undecoded": True}
        else:
            kept["body"] = _content(text, media_type)
    return kept


def _text(header: str) -> str:
    """A header's value. Bytes outside of UTF-8 come as halves of surrogate pairs, which no queue takes."""
    return header.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _decoded(body: bytes, media_type: str) -> str | None:
    """A body as text; None if the charset is unknown, or the body is not in the charset that the sender names."""
    headers = Message()
    headers["Content-Type"] = _text(media_type)
    charset = next((name for mark, name in _MARKS if body.startswith(mark)), headers.get_content_charset())
    try:
        text = body.decode(charset or (json.detect_encoding(body) if is_json(media_type) else "utf-8"))
        text.encode()  # Some codecs make halves of surrogate pairs.
    except (LookupError, ValueError):
        return None
    return text


def _content(text: str, media_type: str) -> Any:
    """A body as JSON, or else as text; None for an empty body. JSON that parsers read differently stays text."""
    if is_json(media_type):
        try:
            return read_json(text)
        except ValueError:
            pass
    return text or None


FIRST_DELAY: Final = 2.0
"""Longest delay before the second try, in seconds; doubled before each further try."""
LONGEST_DELAY: Final = 300.0
"""Longest delay before a try, in seconds, unless the service asks for more."""
AFTER: Final = 1.0
"""Seconds after the last moment at which a try may be under way; then at the latest a call comes back, to be answered."""
_LATE: Final = "too late for a try"
_NO_CREDENTIALS: Final = "credentials"
_REFUSED: Final = (401, 425, 429)
"""Status codes by which a service says that the try was not carried out, and that a further try may be."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Taken:
    """A call, as taken from its queue.

    Attributes:
        delivered: the envelope as delivered, with the data or the address of a blob.
        made: the time of the call.
        tried_before: whether an earlier try may have gone out with an unknown outcome.
    """

    delivered: Envelope
    call: Call
    made: datetime
    tried_before: bool

    def all_tried(self, api: Api | None) -> datetime:
        """The time after which no try of any copy can be under way anywhere. Only then is the outcome reported as unknown.

        Args:
            api: the `Api` of this process, or None; another process may have tried for as long as the call says.
        """
        lifetime = timedelta(seconds=self.call.key_lifetime)
        return self.made + (lifetime if api is None else max(lifetime, api.key_lifetime))


@dataclass(frozen=True)
class Caller:
    """Makes calls.

    Attributes:
        apis: the services, by name.
        publisher: sends calls to their queues once more, and sends replies.
        claims: fetches calls that are too large for their queue.
        begin: awaited before anything else.
        observer_slot: the observer, which is told of every try.
    """

    apis: Mapping[str, Api]
    wire: Wire
    publisher: Publisher
    routes: Routes
    claims: ClaimChecks
    begin: Callable[[], Awaitable[None]]
    now: Callable[[], datetime]
    random: Random
    show: Show = shown
    observer_slot: ObserverSlot = field(default_factory=ObserverSlot)
    _places: dict[str, asyncio.Semaphore] = field(default_factory=dict)

    async def take(self, message: Delivered) -> None:
        """Make a call; documented at `ExactlyOnce.call`."""
        taken = await self._read(message)
        api = self.apis.get(taken.call.api)
        if api is None:
            raise self._no_api(taken.call)
        place = self._places.setdefault(api.name, asyncio.Semaphore(api.most_at_once))
        async with place:
            received = await self._tried(taken, api)
        if isinstance(received, Received) and received.is_final:
            await self._reply(taken, api, received)
        else:
            await self._unknown_or_again(taken, api, received)

    async def settle(self, message: Delivered) -> None:
        """Decide about a call that its queue gave up on; documented at `ExactlyOnce.settle_call`."""
        # An earlier delivery may have ended in the middle of a try.
        taken = replace(await self._read(message), tried_before=True)
        api = self.apis.get(taken.call.api)
        if api is not None:
            await self._unknown_or_again(taken, api, "given up by its queue")
            return
        # Another process may know the service, and try a copy until the end of the key's lifetime.
        left = (taken.all_tried(None) - self.now()).total_seconds()
        if left > self._longest_delay:
            raise self._no_api(taken.call)
        await self._reply(taken, None, None, max(left + AFTER, 0.0))

    async def _read(self, message: Delivered) -> _Taken:
        delivered = envelope_of(message)
        await self.begin()
        about = f"Message {key_of(delivered)}"
        if delivered.type != CALL_TYPE or delivered.time is None:
            raise InvalidMessage(f"{about} is no call. Only context.call sends to the queue of an Api.")
        call = read_call(delivered)
        if call.replies not in self.routes.limits:
            raise ConfigurationError(
                f"{about}: its reply goes to {call.replies!r}, which is no destination of this application. Declare it."
            )
        # A delivery without acknowledgement may have ended in the middle of a try.
        tried = bool(dict(delivered.extensions).get(TRIED)) or (delivery_of(message) or 1) > 1
        return _Taken(delivered, call, delivered.time, tried)

    def _no_api(self, call: Call) -> ConfigurationError:
        names = ", ".join(sorted(self.apis)) or "none"
        return ConfigurationError(f"There is no Api {call.api!r}; known are: {names}. Declare it in destinations=.")

    async def _tried(self, taken: _Taken, api: Api) -> Received | str:
        """One try, or the reason for none. A call may have waited long for its place, and credentials may take long."""
        request = await self._prepared(taken, api)
        if self.now() > api.last_start(taken.made, timedelta(seconds=taken.call.key_lifetime)):
            return _LATE
        if request is None:
            return _NO_CREDENTIALS
        received = await self.wire.send(request)
        self.observer_slot.called(taken.delivered, received)
        return received

    async def _unknown_or_again(self, taken: _Taken, api: Api, received: Received | str) -> None:
        """Report an unknown outcome once no process can be trying any copy; until then, send the call to its queue again."""
        if self.now() > taken.all_tried(api):
            await self._reply(taken, api, None)
        else:
            await self._again(taken, api, received)

    async def _prepared(self, taken: _Taken, api: Api) -> Request | None:
        """The request of a try; None without credentials."""
        call = taken.call
        try:
            address = api.address(call.path)
        except ValueError as error:
            raise InvalidMessage(f"Message {key_of(taken.delivered)}: {error}") from None
        credentials = await self._credentials(api)
        if credentials is None:
            return None
        delivered = taken.delivered
        data = (await self.claims.redeemed(delivered) if self.claims.claims(delivered) else delivered).data
        body = None if data.text == "null" else data.text.encode()
        content_type = {} if body is None else {"Content-Type": "application/json"}
        headers = {**credentials, **content_type, api.key_header: delivered.id}
        return Request(call.method, address, headers, body, api.timeout, api.most_bytes)

    async def _credentials(self, api: Api) -> Mapping[str, str] | None:
        """The headers that prove the caller's identity; None if the application's function for credentials fails.

        The function has a task of its own: an exception cannot end the task of the call, and a cancellation from outside
        differs from a `CancelledError` of the function.
        """
        if api.credentials is None:
            return {}
        asked = asyncio.create_task(_asked(api.credentials))
        try:
            await asyncio.wait({asked})
        except asyncio.CancelledError:
            asked.cancel()
            await asyncio.wait({asked})
            raise
        try:
            return asked.result()
        except _NoCredentials as error:
            *_, cause = islice(causes_of(error), 2)
            why, failure = class_of(cause), self.show(cause)
            _log.warning("the credentials for api %s could not be had: %s", api.name, why, exc_info=failure)
            return None

    async def _again(self, taken: _Taken, api: Api, received: Received | str) -> None:
        """Send a call to its queue once more: for a try while there is time, or else to be answered."""
        longest = min(LONGEST_DELAY, FIRST_DELAY * 2 ** min(taken.delivered.requeued, 10))
        asked = _asked_delay(received, self.now()) if isinstance(received, Received) else 0.0
        left = (taken.all_tried(api) - self.now()).total_seconds()
        delay = min(max(self.random.uniform(longest / 2, longest), asked), left + AFTER)
        why = f"status {received.status}" if isinstance(received, Received) else received
        _log.info("call %s of api %s: %s; again in %.0f s", taken.delivered.id, api.name, why, delay)
        again = taken.delivered.once_more()
        if taken.tried_before or _may_be_carried_out(received):
            again = replace(again, extensions=tuple(sorted((dict(again.extensions) | {TRIED: True}).items())))
        wire = again.to_json()
        await self._send(Output(key_of(taken.delivered), api.name, wire, min(delay, self._longest_delay)))

    @property
    def _longest_delay(self) -> float:
        return (self.routes.max_delay - timedelta(seconds=1)).total_seconds()

    async def _reply(self, taken: _Taken, api: Api | None, received: Received | None, delay: float = 0.0) -> None:
        call, delivered = taken.call, taken.delivered
        if received is None:
            _log.warning("the outcome of call %s of api %s is unknown", delivered.id, call.api)
        outcome = "unknown" if received is None else "answered"
        data = {"tag": call.tag, "outcome": outcome, "tried_before": taken.tried_before}
        if received is not None and api is not None:
            data |= content_of(received, api.headers)
        envelope = Envelope(
            f"exactlyonce/api/{quote(call.api, safe='')}",
            delivered.id,
            call.then,
            Json.of(data),
            self.now(),
            extensions=ReplyTo(delivered.id, call.version, delivered.source).extensions,
        ).with_trace(delivered.trace)
        if delivered.since is not None:
            envelope = envelope.with_stable_time(delivered.since)  # All replies to the call are one message.
        wire = envelope.to_json()
        if self.routes.is_too_large(call.replies, wire.size):
            wire = envelope.with_data(Json.of({**data, "body": None, "cut": True})).to_json()
        await self._send(Output(key_of(envelope), call.replies, wire, delay))

    async def _send(self, output: Output) -> None:
        if await self.publisher.publish(Publish((output,))) is not PUBLISHED:
            raise TryAgainLater(f"Message {output.id} may not have been sent; its call comes again.")


def _may_be_carried_out(received: Received | str) -> bool:
    """Whether a try without a final answer may have been carried out: not if no request went out, or the service refused."""
    return (
        received.status not in _REFUSED if isinstance(received, Received) else received not in (_LATE, _NO_CREDENTIALS)
    )


class _NoCredentials(ExactlyOnceError):
    """The function for credentials raised, or gave none."""


async def _asked(function: Credentials) -> dict[str, str]:
    with ApplicationsCode(lambda error: _NoCredentials(class_of(error))):
        returned: Any = function()
        headers = dict(await returned if inspect.isawaitable(returned) else returned)
        if not all(isinstance(part, str) for pair in headers.items() for part in pair):
            raise TypeError("credentials= has to give names and values of headers, which are strings")
        return headers


def _asked_delay(received: Received, now: datetime) -> float:
    """The delay that an answer asks for with `Retry-After`, in seconds; 0 without the header."""
    asked = received.headers.get("retry-after", "").strip()
    if asked.isascii() and asked.isdigit():
        return float(asked[:9])
    try:
        date = parsedate_to_datetime(asked)
    except (TypeError, ValueError):
        return 0.0
    if date.tzinfo is None:
        date = date.replace(tzinfo=timezone.utc)
    return max((date - now).total_seconds(), 0.0)
