"""Memories of entities stay within a budget of bytes."""

from __future__ import annotations

from exactlyonce.attempt import Memory, Remembered
from exactlyonce.drivers.lanes import Memories
from exactlyonce.records.ledger import EntityView, Ledger
from exactlyonce.values.frozen_json import Json


def memory(bytes: int = 1_000, etag: str = "1") -> Memory:
    return Memory(saved=Remembered(Json.of("x" * (bytes - 2)), etag))


def test_a_memory_is_taken_once() -> None:
    memories = Memories(10_000)
    memories.keep("a", memory())
    assert memories.take("a") == memory()
    assert memories.take("a") == Memory()
    assert memories.size == 0


def test_the_least_recently_used_leave_first() -> None:
    memories = Memories(3 * 1_500)
    for key in "abc":
        memories.keep(key, memory())
    memories.keep("a", memories.take("a"))
    memories.keep("d", memory())
    assert [memories.take(key) for key in "abcd"] == [memory(), Memory(), memory(), memory()]


def test_a_hundred_thousand_entities_take_no_more_than_the_budget() -> None:
    memories = Memories(150_000)
    for number in range(100_000):
        memories.keep(str(number), memory())
    assert memories.size == 150_000


def test_a_newer_memory_takes_the_place_of_an_older_one() -> None:
    memories = Memories(10_000)
    memories.keep("a", memory())
    memories.keep("a", memory(2_000, "2"))
    assert memories.size == 2_500
    assert memories.take("a") == memory(2_000, "2")


def test_a_document_whose_parts_are_kept_counts_three_times() -> None:
    saved = Remembered(Json.of("x" * 998), "1", parts=EntityView(None, Ledger()))
    memories = Memories(3_500)
    memories.keep("a", Memory(saved=saved))
    assert memories.size == 3_500


def test_what_says_nothing_or_is_too_large_is_not_kept() -> None:
    memories = Memories(1_499)
    memories.keep("a", Memory(entity_token="0:-1#4"))
    memories.keep("b", memory())
    assert memories.size == 0


def test_without_a_budget_nothing_is_kept() -> None:
    memories = Memories(0)
    memories.keep("a", memory())
    assert memories.take("a") == Memory()
