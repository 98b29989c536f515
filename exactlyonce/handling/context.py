"""The context: the handler's input besides state and message, and the outputs and the answer of the handler."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from random import Random
from typing import Final, TypeVar
from urllib.parse import quote

from exactlyonce.effects.attempt import Before
from exactlyonce.errors import ConfigurationError, ContextClosed, OutputTooLarge, UnknownDestination
from exactlyonce.handling.calls import Api, Call, Reply, call_of
from exactlyonce.handling.messages import encode, require_model
from exactlyonce.handling.routes import Destination, Model, Routes, name_of
from exactlyonce.records.blobs import CLAIM_CHECKS, MAX_BLOB_BYTES, Author, Blob, folder_of
from exactlyonce.records.ledger import CALL_TYPE
from exactlyonce.records.outbox import MAX_OUTPUT_BYTES, RECEIVER, Answer, Output, Place, Sequences
from exactlyonce.values.declarations import require
from exactlyonce.values.envelope import STABLE_TIME, Envelope, Extensions, Origin, stable_text
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.round_trips import shown

# Kept messages: sent at a later time, until they are released or cancelled.


NUMBERED: Final = 256
"""Bytes reserved in a kept message for the attributes that its release adds."""


def utc(due: datetime) -> datetime:
    """A time with a time zone, in UTC. Raises ValueError without a time zone, or outside the years 1 to 9999 in UTC."""
    if due.utcoffset() is None:
        raise ValueError(f"at= is a time with a time zone, such as context.now + timedelta(days=30); {due} has none.")
    try:
        return due.astimezone(timezone.utc)
    except OverflowError:
        raise ValueError(f"at= is a time whose year is 1 to 9999 in UTC, too; {due} is none.") from None


def released(routes: Routes, before: Before, kept: Output) -> tuple[Sequences, Output]:
    """The sequences after a release, and the kept message with a new time, and a number if its receiver takes messages in
    order. Raises `UnknownDestination` or `OutputTooLarge` if the application or the queue no longer takes it."""
    envelope = replace(Envelope.read(kept.envelope.text), time=before.at)
    receiver = dict(envelope.extensions).get(RECEIVER) if kept.destination in routes.ordered else None
    if receiver is None:
        return before.sequences, _checked(routes, kept, envelope, None)
    sequences, place = routes.number(before.sequences, kept.destination, str(receiver), before.at, before.tx)
    others = (extension for extension in envelope.extensions if extension[0] != RECEIVER)
    envelope = replace(envelope, extensions=tuple(sorted((*place.extensions, *others))))
    return sequences, _checked(routes, kept, envelope, place)


def _checked(routes: Routes, kept: Output, envelope: Envelope, place: Place | None) -> Output:
    wire = envelope.to_json()
    routes.check(kept.destination, wire.size)
    return Output(kept.id, kept.destination, wire, place=place, index=kept.index)


# Replies of handlers, as answers to requests.


MAX_ANSWER_BYTES: Final = 16 * 1024
"""Most bytes of an answer. Its commit writes it in the entity document."""
_STATUSES: Final = range(200, 600)
_WITHOUT_BODY: Final = (204, 205, 304)
_HEADERS: Final = re.compile(r"location|etag|content-language|x-[a-z0-9-]+", re.IGNORECASE)
_VALUE: Final = re.compile(r"[!-~](?:[ -~]*[!-~])?")


def answer_of(body: object, status: int | None, headers: Mapping[str, str]) -> Answer:
    """A handler's reply as an answer. Arguments and errors are those of `Context.reply`."""
    chosen = status or (204 if body is None else 200)
    if chosen not in _STATUSES or (body is not None and chosen in _WITHOUT_BODY):
        raise ValueError(f"The status code of an answer is from 200 to 599, and {_WITHOUT_BODY} have no body.")
    for name, value in headers.items():
        if not _HEADERS.fullmatch(name) or not _VALUE.fullmatch(value):
            raise ValueError(
                "The headers of an answer are Location, ETag, Content-Language, and names that begin with X-; values are "
                "printable ASCII."
            )
    if body is not None:
        require_model(type(body), "The body of an answer")
    text = None if body is None else Json.of(shown(body)).text
    answer = Answer(chosen, tuple(headers.items()), text)
    if answer.size > MAX_ANSWER_BYTES:
        raise OutputTooLarge(
            f"The answer has {answer.size} bytes; at most {MAX_ANSWER_BYTES} are allowed. Write what is large with "
            "context.write_once, and reply with its address."
        )
    return answer


Sent = TypeVar("Sent", bound=Model)
_BLOB_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,199}")


class Context:
    """A handler's only source of time, ids and chance, and its only way to send.

    Ids and chance derive from the message and the entity: handling the same message again gives the same ids and chance.
    Messages are sent after the new state is committed. A context belongs to its handler: after the handler's end, all but `now`
    raise `ContextClosed`.
    """

    def __init__(self, origin: Origin, before: Before, routes: Routes, *, trace: Extensions = ()) -> None:
        self._origin = origin
        self._before = before
        self._routes = routes
        self._trace = trace
        self._sequences = before.sequences
        self._calls: dict[str, Call] = {}
        self._kept: tuple[tuple[datetime, Output], ...] = ()
        self._cancelled: frozenset[str] = frozenset()
        self._count = 0
        self._random: Random | None = None
        self._ids = 0
        self._bytes = 0
        self._outputs: list[Output] = []
        self._blobs: dict[str, Blob] = {}
        self._deleted = False
        self._answer: Answer | None = None
        self._closed = False

    def close(self) -> None:
        """End the use of the context, since its handler has ended. The results stay readable."""
        self._closed = True

    def _require_open(self, what: str) -> None:
        if self._closed:
            raise ContextClosed(
                f"context.{what} was used after the handler of message {self._origin.message} on entity {self._origin.entity} "
                "had ended, and had no effect. Use a context only inside of its handler, and keep it nowhere."
            )

    @property
    def now(self) -> datetime:
        """Time of this attempt, in UTC; the same at every call."""
        return self._before.at

    @property
    def random(self) -> Random:
        """Random numbers, seeded by message and entity. Not for secrets."""
        self._require_open("random")
        if self._random is None:
            self._random = self._origin.random()
        return self._random

    def new_id(self) -> str:
        """A new UUID; the n-th UUID of a message is the same in every attempt."""
        self._require_open("new_id")
        self._ids += 1
        return self._origin.new_id(self._ids - 1)

    def send(
        self,
        destination: str | Destination[Sent],
        message: Sent,
        *,
        delay: timedelta | None = None,
        at: datetime | None = None,
    ) -> str:
        """Send a message once the new state is committed; return its id, which is the same in every attempt.

        Args:
            destination: a queue or topic, or its logical name. An application refuses to start if a handler names a
                `Destination` that the application lacks; a name is only checked when a message is sent.
            message: an instance of a registered message type.
            delay: how long the message stays invisible after it was published. A receiver that takes messages in order waits
                for it.
            at: a time with a time zone. Until then, however long, the entity keeps the message, and `cancel` takes it back. The
                sweeper releases the message within some minutes of the time. Its age counts from the release.

        Raises:
            UnknownDestination: no destination has the name.
            OutputTooLarge: the message does not fit its queue, or all outputs of the handler together do not fit a document.
            ConfigurationError: the class of the message is not registered, or its receiver has no handler for it; or `at` is
                set, and the entity's strategy is not `Outbox()`.
            HandlerFailed: the function that names the receiver or the session raised, or returned no key.
            ValueError: the delay is negative, or so long that the message would expire before it appears; or the receiver or
                the session is not valid; or `at` has no time zone, leaves the years 1 to 9999 in UTC, or comes with a delay.
        """
        self._require_open("send")
        if at is not None:
            if delay is not None:
                raise ValueError("A message has delay= or at=, not both.")
            return self._send(name_of(destination), message, encode(message), timedelta(0), due=utc(at))
        wait = delay or timedelta(0)
        if not timedelta(0) <= wait < self._routes.max_delay:
            raise ValueError(f"A delay is at least 0 and less than {self._routes.max_delay}; this one is {wait}.")
        return self._send(name_of(destination), message, encode(message), wait)

    def cancel(self, id: str) -> bool:
        """Cancel a message that this entity sent with `at=`, with the commit of the new state.

        Args:
            id: as `send` returned it.

        Returns:
            True if the message was still kept: then it is never sent. False if it was released, so that its receiver gets or
            got it; or if it was cancelled before, or this entity never kept a message with this id.

        Raises:
            ConfigurationError: the entity's strategy is not `Outbox()`.
        """
        self._require_open("cancel")
        stays = tuple(item for item in self._kept if item[1].id != id)
        if len(stays) < len(self._kept):
            self._kept = stays
            return True
        if id not in self._require_keeper() - self._cancelled:
            return False
        self._cancelled |= {id}
        return True

    def _require_keeper(self) -> frozenset[str]:
        """Ids of the messages kept before. Raises `ConfigurationError` where the strategy keeps none."""
        if self._before.kept is None:
            raise ConfigurationError(
                "Only entities with the strategy Outbox() keep messages until a time: only their ledger names them. Elsewhere "
                "send with delay=, and let the receiver decide whether the message still matters."
            )
        return self._before.kept

    def call(
        self,
        api: Api,
        method: str,
        path: str,
        body: object = None,
        *,
        then: type[Reply],
        tag: str = "",
    ) -> None:
        """Call another service once the new state is committed. Its reply comes as a message, exactly once.

        The service gets the same idempotency key in every try. So it carries the call out once, if it keeps keys as long as the
        `Api` says.

        Args:
            api: the service, which the application declares among its destinations.
            method: GET, POST, PUT, PATCH or DELETE.
            path: the part of the address after the base of the service; may have a query. Foreign text has to be quoted.
            body: a pydantic model or a dataclass, which is sent as JSON; None for none.
            then: type of the reply, which exactly one destination of the application receives.
            tag: text for the reply; the `key=` of its handler finds the entity by the tag.

        Raises:
            ConfigurationError: the entity's strategy is not `Outbox()`; no destination, or more than one, receives the reply;
                or the body or the type of the reply is not a valid model.
            UnknownDestination, OutputTooLarge: as for `send`.
            ValueError: the method, the path or the tag is not valid.
        """
        self._require_open("call")
        require("The first argument of context.call", api, Api, "the Api that the application declares")
        if self._before.version is None:
            raise ConfigurationError(
                "Only entities with the strategy Outbox() make calls: only they know their replies."
            )
        replies = self._routes.replies(then)
        call = call_of(api, method, path, body, then=then, replies=replies, tag=tag, version=self._before.version)
        self._send(api.name, call, (CALL_TYPE, Json.of(call.body)), timedelta(0), more=call.extensions)
        self._calls[self._outputs[-1].id] = call

    def _send(
        self,
        destination: str,
        message: object,
        encoded: tuple[str, Json],
        wait: timedelta,
        *,
        more: Extensions = (),
        due: datetime | None = None,
    ) -> str:
        name, data = encoded
        index = self._count
        id = self._origin.output_id(index)
        # A kept message gets its number when it is released, so that a cancelled message leaves no gap.
        sequences, place = self._placed(destination, message) if due is None else (self._sequences, None)
        room = 0 if due is None else NUMBERED
        extensions = self._routes.session(destination, message) if place is None else place.extensions
        # Names are sorted over all parts: the names of each part come before those of the next; calls have no place.
        extensions = (*more, *extensions, *self._stable_time(due), *self._trace)
        envelope = Envelope(self._origin.entity.source, id, name, data, self._before.at, extensions=extensions)
        wire = envelope.to_json()
        blob = None
        # A kept message has a document of its own, maybe for longer than such a blob is kept.
        apart = self._routes.goes_apart if due is None else self._routes.is_too_large
        if self._routes.blobs is not None and apart(destination, wire.size + room):
            blob = self._blob(f"{CLAIM_CHECKS}/{self._folder}/{id}", data.text.encode(), "application/json")
            wire = envelope.by_reference(self._address_of(blob)).to_json()
        self._routes.check(destination, wire.size + room)
        output = Output(id, destination, wire, wait.total_seconds(), place, index)
        total = self._bytes + output.size
        if total > MAX_OUTPUT_BYTES:
            sizes = f"the handler's outputs have {total} bytes together; at most {MAX_OUTPUT_BYTES} are allowed"
            raise OutputTooLarge(
                f"With this message {sizes}. Send fewer, or send the entity a message that continues with the rest.",
                kept=sizes,
            )
        if blob is not None:
            self._keep(blob)
        self._bytes = total
        self._sequences = sequences
        if due is None:
            self._outputs.append(output)
        else:
            self._require_keeper()
            self._kept = (*self._kept, (due, output))
        self._count += 1
        return id

    def _placed(self, destination: str, message: object) -> tuple[Sequences, Place | None]:
        """The sequences after the next output, and its place; a message handled again repeats the places of the first time."""
        if self._before.sent is not None:
            again = self._before.sent[len(self._outputs) :]
            return self._sequences, again[0].place if again else None
        receiver = self._routes.receiver(destination, message)
        if receiver is None or destination not in self._routes.ordered:
            return self._sequences, None
        begun = sum(output.place is not None and output.place.number == 1 for output in self._outputs)
        return self._routes.number(
            self._sequences, destination, receiver.source, self._before.at, self._before.tx, begun=begun
        )

    def _stable_time(self, due: datetime | None) -> Extensions:
        """The time that copies of an output share. A kept message has none: its due time may depend on the attempt."""
        if self._before.since is None or due is not None:
            return ()
        return ((STABLE_TIME, stable_text(self._before.since)),)

    def write_once(self, name: str, content: bytes | str, *, content_type: str = "application/octet-stream") -> str:
        """Write a blob together with the new state, and return its address, which messages may carry.

        The blob is written before the commit, under an address of this attempt; if the attempt is lost, no message carries the
        address.

        Args:
            name: last part of the address: letters, digits and `.-_/`, at most 200 characters, different for each blob.
            content: the blob's content; text is written as UTF-8.
            content_type: media type of the content.

        Raises:
            UnknownDestination: no container for blobs is configured.
            OutputTooLarge: the blobs of one message have more than 64 MiB together.
            ValueError: the name or the media type is not valid, or another blob of this message has the name.
        """
        self._require_open("write_once")
        if not _BLOB_NAME.fullmatch(name) or any(part.endswith(".") or not part for part in name.split("/")):
            raise ValueError(
                "The name of a blob has 1 to 200 letters, digits and .-_/ and begins with a letter or a digit; no part of it "
                "is empty or ends with a dot."
            )
        if not content_type.isascii() or not content_type.isprintable() or content_type != content_type.strip():
            raise ValueError("A media type has printable ASCII characters only, and no blank at either end.")
        written = content.encode() if isinstance(content, str) else content
        blob = self._blob(f"{self._folder}/{name}", written, content_type)
        address = self._address_of(blob)
        self._keep(blob)
        return address

    @property
    def _folder(self) -> str:
        return f"{folder_of(self._origin.entity)}/{self._before.folder or self._before.tx}"

    def _blob(self, path: str, content: bytes, content_type: str) -> Blob:
        author = Author(self._origin.entity, self._origin.message, self._before.tx, self._before.at)
        return Blob(path, content, content_type, author)

    def _address_of(self, blob: Blob) -> str:
        if self._routes.blobs is None:
            raise UnknownDestination(
                "There is no container for blobs. Name one in the setting EXACTLYONCE__blobContainer of the application."
            )
        return f"{self._routes.blobs}/{quote(blob.name)}"

    def _keep(self, blob: Blob) -> None:
        if blob.name in self._blobs:
            raise ValueError(f"Two blobs of one message have the name {blob.name!r}.")
        total = len(blob.content) + sum(len(kept.content) for kept in self._blobs.values())
        if total > MAX_BLOB_BYTES:
            raise OutputTooLarge(
                f"With this blob the handler's blobs have {total} bytes together; at most {MAX_BLOB_BYTES} are allowed. Write "
                "fewer, or send the entity a message that continues with the rest."
            )
        self._blobs[blob.name] = blob

    def announce(self, event: Model) -> None:
        """Send an event to every destination that receives its type. A command goes to a single destination: `send` it.

        Raises:
            UnknownDestination: no destination receives it, and its type is not declared with `@message(..., event=True)`; or a
                handler of this application takes it, so that a destination was forgotten.
            ConfigurationError, ContextClosed, OutputTooLarge, ValueError: as for `send`.
        """
        self._require_open("announce")
        name, data = encode(event)
        for destination in self._subscribers(type(event), name):
            self._send(destination, event, (name, data), timedelta(0))

    def _subscribers(self, model: type, name: str) -> tuple[str, ...]:
        """The destinations of an event. A message handled again repeats those of the first time, whatever was added since."""
        if self._before.sent is None:
            return self._routes.subscribed(model)
        subscribed = self._routes.subscribers.get(name, ())
        following = tuple(output.destination for output in self._before.sent[len(self._outputs) :])
        again: tuple[str, ...] = ()
        for destination in subscribed:
            if following[: len(again) + 1] == (*again, destination):
                again = (*again, destination)
        return again

    def delete(self) -> None:
        """Delete the entity with this commit, whatever state the handler returns.

        A tombstone remains, so that late duplicates are still recognized. A later message finds the entity absent.
        """
        self._require_open("delete")
        self._deleted = True

    def reply(
        self, body: object = None, *, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        """Answer the request behind the message; without effect for a message from a queue.

        The answer is part of the commit: every retry of the request gets it, byte for byte. Without a reply, the answer is 204.

        Args:
            body: a pydantic model or a dataclass, which is sent as JSON; None for none.
            status: status code of HTTP, 200 to 599; None for 200, or for 204 without a body.
            headers: Location, ETag, Content-Language, and names that begin with X-.

        Raises:
            OutputTooLarge: the answer has more than 16 KiB.
            ConfigurationError: the body is neither a pydantic model nor a dataclass.
            HandlerFailed: the body holds NaN or an infinity.
            ValueError: the handler has replied before, or the status code or a header is not valid.
        """
        self._require_open("reply")
        if self._answer is not None:
            raise ValueError("A handler replies once.")
        self._answer = answer_of(body, status, headers or {})

    @property
    def answer(self) -> Answer | None:
        """The reply so far; None if there is none."""
        return self._answer

    @property
    def calls(self) -> dict[str, Call]:
        """The calls so far, by the ids of their outputs."""
        return dict(self._calls)

    @property
    def kept(self) -> tuple[tuple[datetime, Output], ...]:
        """The messages to keep so far, each with its due time."""
        return self._kept

    @property
    def cancelled(self) -> frozenset[str]:
        """Ids of the messages cancelled so far, but for messages of this handler."""
        return self._cancelled

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The outputs so far, in order."""
        return tuple(self._outputs)

    @property
    def blobs(self) -> tuple[Blob, ...]:
        """The write-once blobs so far, in order."""
        return tuple(self._blobs.values())

    @property
    def sequences(self) -> Sequences:
        """All numbers that the entity has given out so far."""
        return self._sequences

    @property
    def deleted(self) -> bool:
        """Whether `delete` was called."""
        return self._deleted
