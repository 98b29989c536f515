"""Everything the library raises.

    ExactlyOnceError
    ├── ConfigurationError      the operator's: found at start-up, names every setting to change
    ├── MessageError            the sender's: the message cannot be processed as it is
    │   ├── MalformedMessage        not a CloudEvents envelope in JSON, or beyond a limit
    │   ├── UnknownMessageType      no handler of this entity takes this type
    │   ├── InvalidMessage          the data does not fit the message's model
    │   ├── UndatedMessage          it has no time, so its age cannot be judged
    │   ├── MessageFromTheFuture    its time is more than a day ahead of the store's
    │   ├── TooOldToJudge           the proof that it was processed may be gone
    │   ├── InvalidKey              a request has no key by which a retry is known, or one that cannot be
    │   ├── KeyReused               another request had its key
    │   └── RequestUnknown          no such request is open, or it was closed
    ├── HandlerError            the business code's: nothing was changed, nothing was sent
    │   ├── HandlerFailed           it raised; the cause is chained
    │   ├── ContextClosed           it used a context after its handler had returned or raised
    │   ├── NoStateReturned         it returned None; `context.delete()` is how to delete
    │   ├── IdentityChanged         it changed the document's id or partition key
    │   ├── UnknownDestination      it sent to a destination that is not configured
    │   ├── OutputTooLarge          an output, or all of them, are over a limit
    │   ├── EntityTooLarge          the document would be over the limit
    │   ├── EntityRefused           the store refuses the document for something other than its size
    │   ├── UniqueKeyTaken          another document has the same values for a unique key
    │   └── NonDeterministicHandler handling a message again gave another result than the first time
    ├── StoredDataError         the data's: a stored document cannot be trusted; nothing was changed
    │   ├── DamagedDocument         it cannot be read
    │   ├── IdTaken                 an entity of another type has this id
    │   ├── NewerSchema             a newer version of the library wrote it
    │   ├── LedgerRemoved           the reserved property was removed
    │   └── DatabaseRestored        what the library kept of older messages is gone
    └── TryAgainLater           the environment's: deliver the message again

An error names its message and entity as soon as they are known, and says what to do. The library's own errors never quote
bodies, which may hold secrets. An exception that a handler raises is chained unchanged, but for what the host gets: there a
stand-in of the same class name and frames takes its place, without its text, unless `EXACTLYONCE__exceptionText` is on.
"""

from __future__ import annotations


class ExactlyOnceError(Exception):
    """Base of all errors of this library; never raised itself.

    Attributes:
        kept: the part of its text that may be kept with a parked message, since it does not quote the message; None if no
            part is known to be safe. Business code can raise these classes with any text.
    """

    def __init__(self, *text: object, kept: str | None = None) -> None:
        super().__init__(*text)
        self.kept = kept


class ConfigurationError(ExactlyOnceError):
    """The application is configured in a way that could break the guarantee, or cannot work at all."""


class MessageError(ExactlyOnceError):
    """A message that cannot be processed as it is; sending the same body again does not help."""


class MalformedMessage(MessageError):
    """The body is not a CloudEvents 1.0 envelope in JSON, or goes beyond a limit."""


class UnknownMessageType(MessageError):
    """No handler of the entity takes messages of this type."""


class InvalidMessage(MessageError):
    """The data of the message does not fit the model declared for its type."""


class UndatedMessage(MessageError):
    """The message has no time, so it may be a copy of a message that was processed long ago."""


class MessageFromTheFuture(MessageError):
    """The time of the message is more than a day ahead of the store's: a clock of its sender is wrong."""


class TooOldToJudge(MessageError):
    """The message is so old that clean-up may have deleted the proof that it was processed."""


class InvalidKey(MessageError):
    """A request has no key by which its retries are known, or one that cannot be."""


class KeyReused(MessageError):
    """Another request had the key of this one. Nothing was changed."""


class RequestUnknown(MessageError):
    """There is no such request: its caller has closed it, or it was left open for so long that clean-up deleted it."""


class HandlerError(ExactlyOnceError):
    """The handler gave no result that can be committed; its message changed nothing and sent nothing."""


class HandlerFailed(HandlerError):
    """The handler raised, or other code of the application's, such as `key=`; what it raised is the `__cause__`."""


class ContextClosed(HandlerError):
    """A context was used after its handler had returned or raised: nothing would come of it."""


class NoStateReturned(HandlerError):
    """The handler returned None instead of the new state."""


class IdentityChanged(HandlerError):
    """The handler changed the id or the partition key of the entity."""


class UnknownDestination(HandlerError):
    """The handler sent a message to a destination that is not configured."""


class OutputTooLarge(HandlerError):
    """A message that the handler sends does not fit its queue, or all of them together do not fit one document."""


class EntityTooLarge(HandlerError):
    """The entity document would grow over the limit."""


class EntityRefused(HandlerError):
    """The store refuses the document, for a property such as `ttl` or for its depth, not for its size."""


class UniqueKeyTaken(HandlerError):
    """The entity document has the same values as another one of its logical partition, for a unique key of the container."""


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
    """The entity was processed before, but its reserved property is gone, and with it the protection from duplicates."""


class DatabaseRestored(StoredDataError):
    """What the library kept of older messages is gone, so a message that is not known may have been processed."""


class TryAgainLater(ExactlyOnceError):
    """The attempt could not be finished now. Nothing is lost: give the message back to its queue."""
