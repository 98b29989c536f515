"""What a read of requests that callers opened may see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from exactlyonce.effects.library import FoundRequests, LoadRequests
from verification.world.store import Store, entity_number, position_of, token_at
from verification.world.writes import Answer

ANSWERED: Final = "a request was found with its answer"


def seen_requests(effect: LoadRequests, store: Store, unanswered: Iterator[Answer]) -> Iterator[Answer]:
    """No answer; and the documents of requests, in every view at or after the token."""
    yield from unanswered
    library = store.libraries[entity_number(effect.entity)]
    for position in range(position_of(effect.token), library.end + 1):
        view = library.view(position)
        found = tuple(view[id] for id in map("request:{}".format, effect.requests) if id in view)
        answered = sum(document.answer is not None for document in found)
        said = f"finds {len(found)} of {len(effect.requests)} requests, {answered} of them answered"
        reply = FoundRequests(found, token_at(position))
        said, seen = f"{said}, in view {position} of {library.end}", ANSWERED if answered else None
        yield Answer(reply, store, said=said, witnessed=seen, aged=position < library.end)
