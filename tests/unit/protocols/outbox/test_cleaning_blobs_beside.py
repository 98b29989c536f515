"""Clean-up of blobs where only what lies beside the entity tells two attempts at one message apart."""

from __future__ import annotations

from datetime import timedelta

import pytest

from exactlyonce.attempt import Memory
from exactlyonce.effects.companions import LoadCompanions
from exactlyonce.effects.entity import LoadEntity
from exactlyonce.protocols.steps.clean_blobs import clean_blobs
from exactlyonce.records.blobs import Author, ListedBlob
from tests.asking import BY_NAME
from tests.unit.playing import AT, ENTITY
from tests.unit.playing_beside import ABSENT
from tests.unit.protocols.playing_blobs import PROTOCOLS, Gallery


def test_a_message_that_was_held_by_a_read_model_tells_of_the_attempt_that_handled_it() -> None:
    gallery = Gallery("resequencer")
    gallery.paint(2)
    gallery.crash(1)
    gallery.paint(1)
    assert gallery.left == ["tx-2", "tx-3", "tx-4", "tx-5"]
    played = gallery.clean()
    assert gallery.left == ["tx-4", "tx-5"]
    assert len(played.only(LoadCompanions).ids) == 2


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_attempts_at_the_very_same_time_are_told_apart_by_their_transactions(protocol: str) -> None:
    gallery = Gallery(protocol)
    gallery.tick = timedelta(0)
    gallery.crash(1)
    gallery.paint(1)
    gallery.clean()
    assert gallery.left == ["tx-2"]


def test_where_a_read_model_cannot_tell_two_attempts_apart_the_blobs_of_both_stay() -> None:
    gallery = Gallery("resequencer")
    gallery.tick = timedelta(0)
    gallery.crash(1)
    gallery.paint(1)
    assert gallery.clean().result.names == ()
    assert gallery.left == ["tx-1", "tx-2"]


def test_blobs_of_a_read_model_that_do_not_say_what_would_tell_of_their_commit_are_not_judged() -> None:
    gallery = Gallery("resequencer")
    old = timedelta(hours=2)
    silent = ListedBlob("account/a/tx-1/x", Author(ENTITY, "web/m-1", "tx-1", AT), old)
    played = gallery.play(clean_blobs(ENTITY, (silent,), ABSENT, Memory(), BY_NAME["resequencer"]))
    assert (played.kinds, played.result.names) == ([LoadEntity], ())
    saying = ListedBlob("account/a/tx-2/x", Author(ENTITY, "web/m-2", "tx-2", AT, "numbered:a:web:a:2"), old)
    played = gallery.play(clean_blobs(ENTITY, (silent, saying), ABSENT, Memory(), BY_NAME["resequencer"]))
    assert played.result.names == ("account/a/tx-2/x",)
