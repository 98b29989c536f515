"""Clean-up of blobs: what shows that an attempt was committed, and each look that may not be left out."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from exactlyonce import Outbox
from exactlyonce.effects.attempt import Memory
from exactlyonce.effects.companions import HasCompanions, LoadCompanions, SaveBatch
from exactlyonce.effects.effect import BEHIND, UNKNOWN, Effect
from exactlyonce.effects.entity import Conflict, Loaded, LoadEntity, SaveEntity
from exactlyonce.effects.library import KEPT, DeleteBlobs, FindBlobs, HasPages
from exactlyonce.errors import LedgerRemoved
from exactlyonce.protocols.outbox import draft
from exactlyonce.protocols.steps.clean import CleanedBlobs, blob_candidates, clean_blobs
from exactlyonce.records.blobs import Author, ListedBlob
from exactlyonce.values.envelope import EntityRef
from exactlyonce.values.frozen_json import Json
from tests.asking import BY_NAME
from tests.unit.bookkeeping import tx
from tests.unit.protocols.by_protocol import COMPANIONS, WITH_COMPANIONS
from tests.unit.protocols.gallery import ALL_PROTOCOLS, PROTOCOLS, Gallery
from tests.unit.script import ABSENT, AT, ENTITY

Kinds = dict[str, type[Effect[Any]]]
APART: Kinds = {"outbox": FindBlobs, **dict.fromkeys(WITH_COMPANIONS, LoadCompanions)}
HAS: Kinds = {"outbox": HasPages, **dict.fromkeys(WITH_COMPANIONS, HasCompanions)}
COMMIT: Kinds = {"outbox": SaveEntity, **dict.fromkeys(WITH_COMPANIONS, SaveBatch)}
PROTOCOL = pytest.mark.parametrize("protocol", ALL_PROTOCOLS)


@pytest.fixture(autouse=True)
def few_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few marks stay in a ledger that the fourth message makes two leave."""
    monkeypatch.setattr(draft, "MOST_MARKS", 2)
    monkeypatch.setattr(draft, "MARKS_STAY", 1)


@PROTOCOL
def test_the_blob_of_a_lost_attempt_is_deleted_behind_a_fence_that_changes_nothing(protocol: str) -> None:
    gallery = Gallery(protocol)
    gallery.paint(1)
    gallery.crash(2)
    document, before = gallery.document, gallery.left
    played = gallery.clean()
    assert before == ["tx-1", "tx-2"]
    assert gallery.left == ["tx-1"]
    assert played.kinds == [LoadEntity, APART[protocol], SaveEntity, DeleteBlobs]
    assert (played.only(SaveEntity).document, gallery.document) == (document, document)
    assert played.result.names == ("account/a/tx-2/picture",)
    assert gallery.paint(2).processed == ("web/m-2",)


@PROTOCOL
def test_blobs_of_committed_attempts_stay_wherever_the_commit_is_recorded(protocol: str) -> None:
    gallery = Gallery(protocol)
    for number in range(1, 5):
        gallery.paint(number)
    played = gallery.clean()
    assert played.kinds == [LoadEntity, APART[protocol]]
    assert played.result == CleanedBlobs((), played.result.memory)
    assert gallery.left == ["tx-1", "tx-2", "tx-3", "tx-4"]


def test_what_the_ledger_records_is_looked_for_nowhere_else() -> None:
    gallery = Gallery()
    gallery.paint(1)
    gallery.paint(2, 3)
    played = gallery.clean()
    assert (played.kinds, played.result.names) == ([LoadEntity], ())
    gallery.crash(4)
    assert gallery.clean().only(FindBlobs).transactions == (tx(4),)


@COMPANIONS
def test_companions_are_read_at_the_token_of_the_entity(protocol: str) -> None:
    gallery = Gallery(protocol)
    gallery.paint(1)
    loaded = gallery.store.perform(LoadEntity(ENTITY))
    assert isinstance(loaded, Loaded)
    played = gallery.clean(memory=Memory(entity_token="0:-1#1"))
    assert (played.only(LoadEntity).token, played.only(LoadCompanions).token) == ("0:-1#1", loaded.token)


@PROTOCOL
@pytest.mark.parametrize("reply", [UNKNOWN, BEHIND])
def test_what_could_not_be_read_proves_nothing(protocol: str, reply: Any) -> None:
    gallery = Gallery(protocol)
    gallery.paint(1)
    gallery.crash(2)
    for kind in (LoadEntity, APART[protocol]):
        played = gallery.clean(replies={kind: reply})
        assert played.kinds[-1] is kind
        assert played.again.reason
    assert gallery.left == ["tx-1", "tx-2"]


@PROTOCOL
@pytest.mark.parametrize("reply", [UNKNOWN, Conflict("0:-1#200"), Conflict(None)])
def test_without_the_fence_nothing_is_deleted(protocol: str, reply: Any) -> None:
    gallery = Gallery(protocol)
    gallery.crash(1)
    played = gallery.clean(replies={SaveEntity: reply})
    assert played.kinds[-1] is SaveEntity
    assert played.again.reason
    assert gallery.left == ["tx-1"]


@PROTOCOL
def test_an_attempt_that_comes_to_its_commit_after_the_fence_commits_no_more(protocol: str) -> None:
    gallery = Gallery(protocol)
    late = gallery.crash(1)
    gallery.clean()
    assert gallery.left == []
    commit = late.send(KEPT)
    assert isinstance(commit, COMMIT[protocol])
    assert isinstance(gallery.usual(commit), Conflict)
    assert gallery.paint(1).processed == ("web/m-1",)
    assert gallery.left == ["tx-2"]


@PROTOCOL
def test_where_the_ledger_was_removed_nobody_knows_so_nothing_is_deleted(protocol: str) -> None:
    gallery = Gallery(protocol)
    for number in range(1, 5):
        gallery.paint(number)
    gallery.put(Json.of({"id": "a", "owner": "a", "total": 2}))
    with pytest.raises(LedgerRemoved):
        gallery.clean()
    assert gallery.clean(replies={HAS[protocol]: UNKNOWN}).again.reason
    assert len(gallery.left) == 4


def test_blobs_of_other_entities_and_of_nobody_are_left_alone() -> None:
    gallery = Gallery()
    old, twin = timedelta(hours=2), EntityRef("account", ("b",), "a")
    candidates = (
        ListedBlob("b", Author(twin, "web/m-1", "tx-7", AT), old),
        ListedBlob("n", None, old),
        ListedBlob("a", Author(ENTITY, "web/m-1", "tx-7", AT), old),
    )
    played = gallery.play(clean_blobs(ENTITY, candidates, ABSENT, Memory(), Outbox()))
    assert played.only(DeleteBlobs).names == ("a",)
    assert gallery.play(clean_blobs(ENTITY, candidates[:2], ABSENT, Memory(), Outbox())).kinds == [LoadEntity]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_attempts_at_the_very_same_time_are_distinguished_by_their_transactions(protocol: str) -> None:
    gallery = Gallery(protocol)
    gallery.tick = timedelta(0)
    gallery.crash(1)
    gallery.paint(1)
    gallery.clean()
    assert gallery.left == ["tx-2"]


def test_blobs_of_a_read_model_that_do_not_say_what_would_record_their_commit_are_not_judged() -> None:
    gallery = Gallery("resequencer")
    old = timedelta(hours=2)
    silent = ListedBlob("account/a/tx-1/x", Author(ENTITY, "web/m-1", "tx-1", AT), old)
    played = gallery.play(clean_blobs(ENTITY, (silent,), ABSENT, Memory(), BY_NAME["resequencer"]))
    assert (played.kinds, played.result.names) == ([LoadEntity], ())
    saying = ListedBlob("account/a/tx-2/x", Author(ENTITY, "web/m-2", "tx-2", AT, "numbered:a:web:a:2"), old)
    played = gallery.play(clean_blobs(ENTITY, (silent, saying), ABSENT, Memory(), BY_NAME["resequencer"]))
    assert played.result.names == ("account/a/tx-2/x",)


def listed(hours: float, author: Author | None = Author(ENTITY, "web/m-1", "tx-1", AT)) -> ListedBlob:  # noqa: B008
    return ListedBlob(f"{hours}", author, timedelta(hours=hours))


def test_only_blobs_between_the_horizon_and_half_the_retention_are_judged() -> None:
    blobs = [listed(hours) for hours in (0, 1, 1.1, 5, 239.9, 240, 241, 10_000)]
    found = blob_candidates([*blobs, listed(5, None)], horizon=timedelta(hours=1), retention=timedelta(days=20))
    assert found == {ENTITY.key: tuple(blobs[2:5])}


def test_candidates_are_grouped_by_entity_also_where_python_takes_two_for_one() -> None:
    entities = [EntityRef("account", (value,), "a") for value in (1, True, "1")]
    blobs = [
        listed(5, Author(entity, "web/m-1", f"tx-{number}", AT)) for number, entity in enumerate([*entities, *entities])
    ]
    found = blob_candidates(blobs, horizon=timedelta(hours=1), retention=timedelta(days=20))
    assert found == {entity.key: (blobs[number], blobs[number + 3]) for number, entity in enumerate(entities)}


def test_pages_are_read_at_the_ledgers_token_since_an_older_view_may_miss_them() -> None:
    gallery = Gallery()
    for number in range(1, 5):
        gallery.paint(number)
    found = gallery.clean().only(FindBlobs)
    (page,) = gallery.pages
    assert gallery.ledger.token is not None
    assert (sorted(found.transactions), found.token) == (sorted(page.blobs), gallery.ledger.token)
