"""The exceptions of the library.

    ExactlyOnceError
    ├── ConfigurationError      the operator's: found at start-up, names every setting to change
    ├── MessageError            the sender's: the message cannot be processed as sent
    │   ├── MalformedMessage        not a CloudEvents envelope in JSON, or beyond a limit
    │   ├── UnknownMessageType      no handler of this entity takes this type
    │   ├── InvalidMessage          the data does not fit the message's model
    │   ├── UndatedMessage          without a time, the message's age cannot be judged
    │   ├── MessageFromTheFuture    the message's time is more than a day ahead of the store's
    │   ├── TooOldToJudge           clean-up may have deleted the proof of processing
    │   ├── InvalidKey              the key of a request is absent or malformed, so retries cannot be recognized
    │   ├── KeyReused               another request had this key
    │   └── RequestUnknown          the request was closed or never opened
    ├── HandlerError            the business code's: nothing was changed, nothing was sent
    │   ├── HandlerFailed           the handler raised; the cause is chained
    │   ├── ContextClosed           a context was used after its handler had returned or raised
    │   ├── NoStateReturned         the handler returned None; `context.delete()` is how to delete
    │   ├── IdentityChanged         the handler changed the document's id or partition key
    │   ├── UnknownDestination      the handler sent to a destination that is not configured
    │   ├── OutputTooLarge          an output, or the sum of all, is over a limit
    │   ├── EntityTooLarge          the document would be over the limit
    │   ├── EntityRefused           the store refuses the document for a reason besides size
    │   ├── UniqueKeyTaken          another document has the same values for a unique key
    │   └── NonDeterministicHandler handling a message again gave another result than the first time
    ├── StoredDataError         the data's: a stored document cannot be trusted; nothing was changed
    │   ├── DamagedDocument         a document cannot be read
    │   ├── IdTaken                 an entity of another type has this id
    │   ├── NewerSchema             a newer version of the library wrote the document
    │   ├── LedgerRemoved           the reserved property was removed
    │   └── DatabaseRestored        the library's documents about older messages are gone
    └── TryAgainLater           the environment's: deliver the message again

An error names its message and entity, once both have been read, and says what to do. The library's own errors never quote
bodies, because bodies may hold secrets. An exception raised by a handler is chained unchanged. The host, however, gets a
stand-in with the same class name and frames, and without the text, unless `EXACTLYONCE__exceptionText` is on.
"""

from __future__ import annotations


class ExactlyOnceError(Exception):
    """Base of all errors of this library; never raised itself.

    Attributes:
        kept: the part of the text that may be stored with a parked message, because the message is not quoted; None if no
            part is proved safe. Business code can raise these classes with any text.
    """

    def __init__(self, *text: object, kept: str | None = None) -> None:
        super().__init__(*text)
        self.kept = kept


class ConfigurationError(ExactlyOnceError):
    """The configuration could break the guarantee, or cannot work at all."""


class MessageError(ExactlyOnceError):
    """A message that cannot be processed as sent; sending the same body again does not help."""


class MalformedMessage(MessageError):
    """The body is not a CloudEvents 1.0 envelope in JSON, or goes beyond a limit."""


class UnknownMessageType(MessageError):
    """No handler of the entity takes messages of this type."""


class InvalidMessage(MessageError):
    """The data of the message does not fit the model declared for its type."""


class UndatedMessage(MessageError):
    """The message has no time, so it may be a copy of a message processed long ago."""


class MessageFromTheFuture(MessageError):
    """The time of the message is more than a day ahead of the store's: a clock of its sender is wrong."""


class TooOldToJudge(MessageError):
    """The message is so old that clean-up may have deleted the proof of processing."""


class InvalidKey(MessageError):
    """The key of a request is absent or malformed, so retries cannot be recognized."""


class KeyReused(MessageError):
    """Another request had the same key. Nothing was changed."""


class RequestUnknown(MessageError):
    """The request does not exist: the caller closed it, or clean-up deleted it after a long time open."""


class HandlerError(ExactlyOnceError):
    """The handler gave no result that can be committed; the message changed nothing and sent nothing."""


class HandlerFailed(HandlerError):
    """The handler raised, or other code of the application, such as `key=`. The `__cause__` is the exception raised."""


class ContextClosed(HandlerError):
    """A context was used after its handler had returned or raised; the call would have no effect."""


class NoStateReturned(HandlerError):
    """The handler returned None instead of the new state."""


class IdentityChanged(HandlerError):
    """The handler changed the id or the partition key of the entity."""


class UnknownDestination(HandlerError):
    """The handler sent a message to a destination that is not configured."""


class OutputTooLarge(HandlerError):
    """A message sent by the handler does not fit its queue, or all messages together do not fit one document."""


class EntityTooLarge(HandlerError):
    """The entity document would grow over the limit."""


class EntityRefused(HandlerError):
    """The store refuses the document, for a property such as `ttl` or for its depth, not for its size."""


class UniqueKeyTaken(HandlerError):
    """Another document of the logical partition has the same values for a unique key of the container."""


class NonDeterministicHandler(HandlerError):
    """A duplicate was handled again on its first state, and gave other outputs than the first time."""


class StoredDataError(ExactlyOnceError):
    """A stored document cannot be trusted, so nothing was changed."""


class DamagedDocument(StoredDataError):
    """A stored document does not have the shape that the library or the state model expects."""


class IdTaken(StoredDataError):
    """An entity of another type in the same container has this id: `key=` has to return ids that differ."""


class NewerSchema(StoredDataError):
    """A stored document was written by a newer version of the library; upgrade this instance."""


class LedgerRemoved(StoredDataError):
    """The entity was processed before, but its reserved property is gone, and so is the protection from duplicates."""


class DatabaseRestored(StoredDataError):
    """The library's documents about older messages are gone, so a message without a mark may have been processed."""


class TryAgainLater(ExactlyOnceError):
    """The attempt could not be finished now. Nothing is lost: give the message back to its queue."""
