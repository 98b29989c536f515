"""Interned replay: generators as a table that fills itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from yieldcheck.situations import ImpureProgramError, Program, Situations


@dataclass(frozen=True, slots=True)
class Ask:
    what: str


def adding(start: int) -> Program:
    first = yield Ask("first")
    second = yield Ask("second")
    return start + first + second


def test_a_situation_holds_the_pending_request_and_in_the_end_the_result() -> None:
    situations = Situations(adding)
    first = situations.first(10)
    assert first.request == Ask("first")
    second = situations.after(first, 1)
    assert second.request == Ask("second")
    assert situations.after(second, 2).result == 13


def test_the_same_replies_lead_to_the_same_object_without_running_again() -> None:
    situations = Situations(adding)
    first = situations.first(10)
    second = situations.after(first, 1)
    runs = situations.runs
    assert situations.first(10) is first
    assert situations.after(first, 1) is second
    assert situations.runs == runs


def forgetful(start: int) -> Program:
    reply = yield Ask("first")
    reply = reply % 2
    rest = yield Ask("second")
    return start + reply + rest


def closing(start: int) -> Program:
    reply = yield Ask("first")
    parity = reply % 2
    reply = lambda: start + parity  # noqa: E731
    yield Ask("second")
    return reply()


@pytest.mark.parametrize("program", [forgetful, closing], ids=["its variables", "what its functions close over"])
def test_situations_are_one_where_a_program_stands_at_the_same_place_with_the_same(
    program: Callable[[int], Program],
) -> None:
    situations = Situations(program)
    first = situations.first(0)
    assert situations.after(first, 1) is situations.after(first, 3)
    assert situations.after(first, 1) is not situations.after(first, 2)


def test_an_impure_program_is_convicted() -> None:
    names: Iterator[str] = iter("abcdef")

    def impure(start: int) -> Program:
        yield Ask(next(names))
        return start

    situations = Situations(impure)
    first = situations.first(0)
    situations.after(first, 0)
    with pytest.raises(ImpureProgramError):
        situations.after(first, 1)
