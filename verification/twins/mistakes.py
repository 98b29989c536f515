"""Mistakes that several zoos make: of the model checker, and of the simulation."""
# ruff: noqa: SLF001  # Steps of protocols are wrapped, which nobody else calls.

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from exactlyonce import Colocated, Outbox
from exactlyonce.drivers.book import ProcessBook
from exactlyonce.effects.attempt import Finished
from exactlyonce.effects.companions import SaveBatch
from exactlyonce.effects.effect import Step
from exactlyonce.effects.entity import PUBLISHED, Publish, SaveEntity
from exactlyonce.effects.library import CloseNumbers, FindPages
from exactlyonce.protocols.outbox import draft, judge
from exactlyonce.protocols.outbox import protocol as outbox
from exactlyonce.protocols.resequencer import protocol as resequencer
from exactlyonce.protocols.resequencer.release import Release
from exactlyonce.protocols.stream import protocol as version_stream
from verification.twins.alterations import asks, called, first, followed, replaced, unasked
from verification.twins.modules import Patch, around

Function = Callable[..., Any]
COMMIT: Final = Outbox._commit
COMMIT_COLOCATED: Final = Colocated._commit
COMMIT_ENTRIES: Final = version_stream._commit
COMMIT_RELEASE: Final = resequencer._commit


def saved_without_condition(any_etag: str) -> Patch:
    return around(COMMIT, asks(SaveEntity, lambda save, *_: replace(save, etag=any_etag)))


def held_without_condition(any_etag: str) -> Patch:
    """A read model saves what it holds whatever the ETag, and what it releases on a condition."""

    def held(save: SaveBatch, _entity: Any, release: Release, _view: Any) -> SaveBatch:
        return save if release.processed else replace(save, etag=any_etag)

    return around(COMMIT_RELEASE, asks(SaveBatch, held))


def ledger_after_a_page(change: Function) -> Patch:
    """The ledger of a commit that cuts a page is what `change(ledger, before, page)` makes of it."""

    def wrapper(shipped: Function) -> Function:
        def twin(work: Any, view: Any, draft: Any, page: Any, paid: Any, *, token: Any) -> Any:
            made = shipped(work, view, draft, page, paid, token=token)
            return made if page is None else change(made, view.ledger, page)

        return twin

    return around(draft.next_ledger, wrapper)


def closed_on(*kinds: Any) -> Patch:
    """The numbers of an attempt are closed after a reply of these kinds to its commit."""

    def close(reply: Any, _save: Any, _self: Any, _work: Any, _view: Any, _draft: Any, opened: Any, *_: Any) -> Any:
        return CloseNumbers(opened.given) if isinstance(reply, kinds) else None

    return around(COMMIT, followed(SaveEntity, close))


def _all_paid(work: Any, view: Any, draft: Any, page: Any, _paid: Any) -> tuple[Any, ...]:
    return work, view, draft, page, frozenset(entry.tx for entry in view.ledger.outbox)


def _unnoticed(commit: Function) -> Function:
    def twin(entity: Any, sight: Any, batch: Any) -> Step[Any]:
        if batch.body == sight.body:
            yield from Publish(batch.outputs)
            return Finished(sight.memory, batch.processed)
        outcome = yield from commit(entity, sight, batch)
        return outcome

    return twin


def _skipping(handled_next: Function) -> Function:
    def twin(self: Any, channel: str, *known: Any) -> bool:
        stopped = len(self.stopped)
        more: bool = handled_next(self, channel, *known)
        if len(self.stopped) == stopped:
            return more
        reception = self._receptions[channel]
        self._receptions[channel] = replace(reception, next=reception.next + 1, failing=None)
        return True

    return twin


def _published(batch: Any) -> Publish | None:
    return Publish(tuple(batch.outputs)) if batch.outputs else None


PUBLISHED_FIRST: Final = around(COMMIT, first(lambda _self, _work, _view, made, *_: _published(made)))
PUBLISHED_FIRST_COLOCATED: Final = around(
    COMMIT_COLOCATED, first(lambda _self, _entity, _sight, made: _published(made))
)
PUBLISHED_FIRST_ENTRIES: Final = around(COMMIT_ENTRIES, first(lambda _entity, _sight, made: _published(made)))
PUBLISHED_FIRST_RELEASE: Final = around(COMMIT_RELEASE, first(lambda _entity, release, _view: _published(release)))
OWED_NOT_PUBLISHED: Final = around(outbox.publish_owed, unasked(Publish, PUBLISHED))
NO_PAGES_SOUGHT: Final = around(judge.may_have_left, replaced(lambda *_: False))
PAGES_IN_ANY_VIEW: Final = around(judge.look_apart, asks(FindPages, lambda find, *_: replace(find, token=None)))
COMPLETE_NOT_RAISED: Final = ledger_after_a_page(lambda made, before, _: replace(made, complete=before.complete))
CLOSED_BEFORE_SENT: Final = around(
    outbox.pay, first(lambda _entity, _outputs, _entries, numbers, _: CloseNumbers(numbers))
)
CLOSED_BY_ANY_VIEW: Final = around(
    ProcessBook.compare, called(lambda self, entity, version, *rest: (self, entity, version + 1, *rest))
)
ENTRIES_DROPPED: Final = around(draft.next_ledger, called(_all_paid))
UNNOTICED_WHERE_UNCHANGED: Final = around(COMMIT_ENTRIES, _unnoticed)
ON_THE_NEWEST_STATE: Final = around(version_stream.point_before, replaced(lambda *known: known[-1]))
SKIPPED_WHERE_HANDLERS_RAISE: Final = around(Release._handled_next, _skipping)
