"""The runner: decodes a message, runs its handler, encodes the result."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce
from typing import Any

from exactlyonce.effects.attempt import Before, Evolve, Handle, Handled, Work
from exactlyonce.errors import DamagedDocument, ExactlyOnceError, HandlerFailed, NoStateReturned
from exactlyonce.handling.context import Context, released
from exactlyonce.handling.entities import Entity, Handler
from exactlyonce.handling.messages import full_name, same_source
from exactlyonce.handling.routes import Routes
from exactlyonce.records.companions import Event
from exactlyonce.records.ledger import LEDGER
from exactlyonce.records.outbox import Answer, Output
from exactlyonce.values.declarations import kind_of
from exactlyonce.values.envelope import EntityRef, Envelope, Origin, key_of
from exactlyonce.values.frozen_json import Json
from exactlyonce.values.lifetimes import Lifetimes
from exactlyonce.values.raised import cause_of, class_of, text_of
from exactlyonce.values.round_trips import ApplicationsCode

# The age check: refuses unknown messages that are too old to judge (fail closed).


@dataclass(frozen=True, slots=True)
class AgeCheck:
    """A `Handle` that refuses messages of unknown or excessive age, like a handler that raises.

    A strategy handles a message only after a search for proof of earlier processing, and takes the time of the attempt after
    the search. So the age at this time shows whether a proof may have been deleted. A message that is handled again is
    recognized, and never refused.

    `forgets` says whether the proof of processing goes with age, as `Strategy.forgets` does.
    """

    handle: Handle
    entity: EntityRef
    lifetimes: Lifetimes
    forgets: Callable[[Envelope], bool]

    def __call__(self, before: Before, envelope: Envelope) -> Handled:
        """Handle one message.
        Raises `UndatedMessage`, `MessageFromTheFuture`, `TooOldToJudge`: the message cannot be judged; nothing was changed."""
        if before.sent is None and self.forgets(envelope):
            refusal = self.lifetimes.refusal(envelope.judged_by, before.at)
            if refusal is not None:
                raise type(refusal)(f"Message {key_of(envelope)} on entity {self.entity}: {refusal}")
        return self.handle(before, envelope)


@dataclass(frozen=True)
class Runner:
    """Runs the handlers of an entity type for one entity; a `Handle`.

    Each message gets a state read anew from the document, so no handler sees changes made to another message's object.
    """

    type: Entity[Any]
    entity: EntityRef
    routes: Routes

    @property
    def absent(self) -> Json:
        """The document of the entity with only id and partition key."""
        return self.type.shape.tombstone(self.entity)

    def __call__(self, before: Before, envelope: Envelope) -> Handled:
        """Handle one message. Raises `MessageError`, `HandlerError` or `StoredDataError`; each names message and entity."""
        if before.version == 1 and before.body is not None and not self.type.adopts:
            raise DamagedDocument(
                f"Message {key_of(envelope)}: the document of entity {self.entity} has no ledger (property {LEDGER!r}). "
                "Nothing was changed. If another program removed it, restore the property from a backup, or duplicates would "
                "not be known. If the document was there before the library, declare Entity(..., adopts=True)."
            )
        registration, message = self.type.read(envelope)
        # Outputs inherit the message's trace, with or without telemetry: a commit derives from the message alone.
        context = Context(Origin(self.entity, key_of(envelope)), before, self.routes, trace=envelope.trace)
        try:
            handled = self._handle(registration.handler, message, before, context)
        except ExactlyOnceError as error:
            text = f"Message {key_of(envelope)} on entity {self.entity}: {text_of(error)}"
            kind = _kind_of(error)
            # The application's own class is named as the cause; the library's class would repeat the sentence.
            cause = cause_of(error)
            if cause is None and type(error) is not kind:  # A cause may have a truth value of its own, which raises.
                cause = error
            raise kind(text, kept=error.kept).with_traceback(error.__traceback__) from cause
        if envelope.asked is None:
            return handled
        return replace(handled, answer=replace(context.answer or Answer(), asked=envelope.asked))

    def work(
        self, lifetimes: Lifetimes, now: datetime, senders: frozenset[str], messages: tuple[Envelope, ...] = ()
    ) -> Work:
        """Messages for the entity, with its handler.

        Args:
            lifetimes: the application's bounds of age.
            now: the present, by the store's time.
            senders: entity types of the application.
            messages: none for `Lanes`.
        """
        return Work(
            self.entity,
            messages,
            self,
            self.absent,
            self.evolve,
            lifetimes.retention.kept(now),
            release=self.release,
            send_limit=lifetimes.send_limit(now),
            page_lifetime=lifetimes.page_lifetime(now),
            senders=senders,
        )

    def release(self, before: Before, kept: Output) -> Handled:
        """Send a kept message of the entity; the state stays. Raises `OutputTooLarge` or `UnknownDestination`."""
        sequences, output = released(self.routes, before, kept)
        return Handled(
            before.body or self.absent,
            (output,),
            deleted=before.body is None,
            sequences=sequences,
            cancelled=frozenset({kept.id}),
        )

    def _handle(self, handler: Handler[Any, Any], message: Any, before: Before, context: Context) -> Handled:
        state = self._state(before.body)
        try:
            with ApplicationsCode(_handler_failed, ExactlyOnceError):
                result = handler(state, message, context)
        finally:
            context.close()
        with _storing(result):
            return self._taken(result, before, context)

    def _taken(self, result: Any, before: Before, context: Context) -> Handled:
        _require_plain(result)
        if context.deleted:
            return _handled(context, self.absent)
        if result is None:
            raise NoStateReturned(
                "The handler returned nothing. Return the new state, or call context.delete() to delete the entity; where the "
                "entity is event-sourced, return a list of events, which may be empty."
            )
        if self.type.event_sourced:
            events = self.type.events(result)
            return replace(_handled(context, self._evolved(before.body, events)), events=events)
        self._require_state(result)
        # Only an outbox knows the first commit; with other strategies any commit may be the first.
        return _handled(context, self._written(result, before.body, first=before.version in (1, None)))

    def _require_state(self, result: Any) -> None:
        model = self.type.state
        if not isinstance(result, model):
            if same_source(type(result), model):
                raise HandlerFailed(
                    f"The handler's result is of {full_name(type(result))}, and entity {self.type.name!r} keeps "
                    f"{full_name(model)}: one module was imported under two names. Import it under one."
                )
            raise HandlerFailed(
                f"The handler's result is {kind_of(result)}. Return the new state of entity {self.type.name!r}: an instance of "
                f"{model.__name__}."
            )

    @property
    def evolve(self) -> Evolve | None:
        """Applies events to a body; None if the entity is not event-sourced."""
        return self._evolved if self.type.event_sourced else None

    def _evolved(self, body: Json | None, events: tuple[Event, ...]) -> Json:
        return self._written(reduce(self.type.apply, events, self._state(body)), body, first=True)

    def _state(self, body: Json | None) -> Any:
        shape = self.type.shape
        return shape.start(self.entity) if body is None else shape.read(self.entity, body)

    def _written(self, state: Any, before: Json | None, *, first: bool) -> Json:
        with _storing(state):
            return self.type.shape.write(self.entity, state, before, adopted=first and self.type.adopts)


def _handler_failed(error: BaseException) -> HandlerFailed:
    return HandlerFailed(f"The handler raised {class_of(error)}. Nothing was changed and nothing was sent.")


def _storing(result: Any) -> ApplicationsCode:
    """Errors while a handler's result is stored: even asking for its class may run the application's code."""
    return ApplicationsCode(
        lambda error: HandlerFailed(
            f"The handler's result, {kind_of(result)}, cannot be stored ({class_of(error)}). Return an instance of the state "
            "model whose values fit it and can be written as JSON."
        ),
        ExactlyOnceError,
    )


def _require_plain(result: Any) -> None:
    """Refuse the result of an async function or a generator function. A callable may hide its kind."""
    if isinstance(result, (Coroutine, Generator, AsyncGenerator)):
        if isinstance(result, (Coroutine, Generator)):
            result.close()  # Nothing of it ran, and Python would warn of a coroutine that nobody awaited.
        raise HandlerFailed(
            f"The handler returned a {type(result).__name__}: it is async, or a generator. It has to be a plain function that "
            "returns the new state. Nothing was changed and nothing was sent."
        )


def _handled(context: Context, body: Json) -> Handled:
    return Handled(
        body,
        context.outputs,
        context.deleted,
        context.sequences,
        context.blobs,
        calls=tuple(context.calls),
        kept=context.kept,
        cancelled=context.cancelled,
    )


def _kind_of(error: ExactlyOnceError) -> type[ExactlyOnceError]:
    """The library's class of an error: a user's subclass may need more than a text."""
    kind: type[ExactlyOnceError] = next(
        kind for kind in type(error).__mro__ if kind.__module__ == ExactlyOnceError.__module__
    )
    return kind
