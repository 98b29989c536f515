"""Interned replay: generators as a table that fills itself."""

from __future__ import annotations

from collections.abc import Iterator
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


def test_situations_with_the_same_variables_at_the_same_place_are_one() -> None:
    situations = Situations(forgetful)
    first = situations.first(0)
    assert situations.after(first, 1) is situations.after(first, 3)
    assert situations.after(first, 1) is not situations.after(first, 2)


def closing(start: int) -> Program:
    reply = yield Ask("first")
    parity = reply % 2
    reply = lambda: start + parity  # noqa: E731
    yield Ask("second")
    return reply()


def test_a_function_that_a_program_defines_is_what_it_closes_over() -> None:
    situations = Situations(closing)
    first = situations.first(0)
    assert situations.after(first, 1) is situations.after(first, 3)
    assert situations.after(first, 1) is not situations.after(first, 2)


def test_an_exception_is_a_result() -> None:
    def failing(start: int) -> Program:
        yield Ask("first")
        raise LookupError(str(start))

    situations = Situations(failing)
    assert isinstance(situations.after(situations.first(7), 0).result, LookupError)


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
