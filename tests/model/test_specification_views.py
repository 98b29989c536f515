"""What the specification's world shows of companions: whole batches, and nothing older than a token allows."""

from __future__ import annotations

from exactlyonce.effects.companions import DeleteCompanions, LoadCompanions, SaveBatch
from exactlyonce.effects.entity import Conflict, Saved
from exactlyonce.records.companions import ColocatedRecord, entry_id, record_id
from exactlyonce.values.envelope import key_of
from exactlyonce.values.frozen_json import Json
from verification.specification.pasts import FIRST, ONE, SECOND, TWO, tending
from verification.specification.playing import finish, play, process
from verification.specification.replies import options
from verification.specification.settings import COLOCATED, SKIPPING, STRATEGIES, STREAM, WAITING
from verification.specification.stored import ENTITY, TOKEN, Stored

IDS = tuple(entry_id(ENTITY, key_of(one)) for one in (FIRST, SECOND))


def test_a_read_without_a_token_may_show_every_version() -> None:
    _, stored = process(STRATEGIES[STREAM], Stored(), FIRST, SECOND)
    shown = [len(view) for view in stored.companion_views(None)]
    assert shown == [2, 1, 0]


def test_a_read_at_a_token_shows_what_was_saved_by_then() -> None:
    _, stored = process(STRATEGIES[STREAM], Stored(), FIRST, SECOND)
    kinds = [option.kind for option in options(LoadCompanions(ENTITY, IDS, f"{TOKEN}1"), stored)]
    assert kinds == ["all found", "not all found", "behind", "unknown"]
    kinds = [option.kind for option in options(LoadCompanions(ENTITY, IDS, f"{TOKEN}2"), stored)]
    assert kinds == ["all found", "behind", "unknown"]


def test_a_record_that_owes_nothing_any_more_may_still_look_as_it_did() -> None:
    """Dropping what is published changes no version of the entity, so no token shows it."""
    _, stored = process(STRATEGIES[COLOCATED], Stored(), FIRST)
    (effect,) = (LoadCompanions(ENTITY, (record_id(ENTITY, key_of(FIRST)),), stored.entity_token),)
    records = [option.reply.companions[0][0] for option in options(effect, stored) if option.kind == "all found"]
    assert [record.owed is None for record in records if isinstance(record, ColocatedRecord)] == [True, False]


def test_a_batch_that_creates_what_exists_changes_nothing() -> None:
    _, stored = process(STRATEGIES[STREAM], Stored(), FIRST)
    (entry,) = (one for one, _ in stored.companions().values())
    again = SaveBatch(ENTITY, Json("{}"), stored.etag, create=(entry,))
    assert stored.apply(again) == (Conflict(stored.entity_token), stored)


def test_a_batch_that_replaces_what_was_changed_since_changes_nothing() -> None:
    _, stored = process(STRATEGIES[WAITING], Stored(), TWO)
    ((document, etag),) = stored.companions().values()
    _, later = process(STRATEGIES[WAITING], stored, ONE)
    late = SaveBatch(ENTITY, Json("{}"), later.etag, replace=((document, etag),))
    assert later.apply(late) == (Conflict(later.entity_token), later)
    reply, _ = stored.apply(SaveBatch(ENTITY, Json("{}"), stored.etag, replace=((document, etag),)))
    assert isinstance(reply, Saved)


def test_only_companions_as_they_were_read_are_deleted() -> None:
    _, stored = process(STRATEGIES[STREAM], Stored(), FIRST)
    ((id, (_, etag)),) = stored.companions().items()
    assert stored.apply(DeleteCompanions(ENTITY, ((id, "another"),)))[1] == stored
    assert stored.apply(DeleteCompanions(ENTITY, ((id, etag),)))[1].companions() == {}


def test_tending_goes_on_until_nothing_more_can_be_released() -> None:
    _, held = process(STRATEGIES[WAITING], Stored(), TWO)
    result, skipped = play(tending(SKIPPING), held)
    assert result.progressed
    _, released = finish(tending(SKIPPING), held)
    assert skipped.published < released.published
