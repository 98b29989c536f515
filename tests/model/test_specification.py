"""The pages of `docs/protocols` describe what the code does: all of it, and nothing else."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import replace
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, Literal, cast, get_args, get_origin

import pytest

from exactlyonce import Resequencer, VersionStream
from exactlyonce.attempt import Again, Before, Finished, Handle, Handled, Memory, Strategy, Work
from exactlyonce.effects.effect import Effect, Step, Together
from exactlyonce.effects.library import NoteSearch, ReadBooks, WriteBook
from exactlyonce.records.companions import Event
from exactlyonce.telemetry.words import Line, words_at
from exactlyonce.values.envelope import Envelope
from exactlyonce.values.frozen_json import Json
from tests.model.finishing import redeliver, who_finishes
from tests.packaging.sources import files
from verification.specification.chapters import CHAPTERS
from verification.specification.diagrams import NO_ANSWER
from verification.specification.driving import Driven, Outcome
from verification.specification.leftovers import is_finished, leftovers
from verification.specification.occasions import stream_attempts
from verification.specification.pages import COMMAND, FOLDER, pages
from verification.specification.pasts import FIRST, NEW, ONE, TWO, crowded
from verification.specification.places import PROCESSING, Place
from verification.specification.playing import WHERE, Occasion, attempt, play, process
from verification.specification.settings import (
    COLOCATED,
    IN_TIME,
    OUTBOX,
    STRATEGIES,
    STREAM,
    WAITING,
)
from verification.specification.stored import Stored
from verification.specification.vocabulary import FINISHERS, LEFTOVERS, REPLIES
from verification.twins.all_effects import MODULES

MOST_NODES = 27
MOST_LINES = 260
UNDOCUMENTED = {"token", "renumber"}
"""Modules of strategies that no page describes yet."""
MAKERS = {"Together", "paid_of", "first_look"}
"""What makes effects besides their classes."""
OF_DRIVERS = (WriteBook, ReadBooks, NoteSearch)
"""What no strategy asks for."""


def all_driven() -> list[Driven]:
    return [part.driven for chapter in CHAPTERS for part in chapter.parts]


@pytest.mark.parametrize("name", ["README.md", *(chapter.name for chapter in CHAPTERS)])
def test_a_page_is_what_the_code_says(name: str) -> None:
    path = FOLDER / name
    written = path.read_text(encoding="utf-8") if path.exists() else ""
    assert written == pages()[name], f"The strategies, or the words about them, have changed: run `{COMMAND}`."


def test_every_step_has_a_comment_with_its_title() -> None:
    assert [f"{Path(file).name}:{number}" for file, number in requests() if words_at(((file, number),)) is None] == []


def test_every_request_in_the_code_is_a_step() -> None:
    seen = {place.lines[-1] for driven in all_driven() for place in driven.steps}
    assert seen == {line for line in requests() if Path(line[0]).stem not in UNDOCUMENTED}


def requests() -> Iterator[Line]:
    """The lines on which strategies ask for effects."""
    for path in files("exactlyonce/protocols"):
        asked = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.YieldFrom))
        yield from ((str(path), node.lineno) for node in asked if is_effect(node.value))


def is_effect(asked: ast.expr) -> bool:
    """Whether what follows `yield from` is an effect: made there, or held by a variable; all else is a call of a strategy."""
    return isinstance(asked, ast.Name) or ast.unparse(asked).partition("(")[0] in REPLIES.keys() | MAKERS


def test_every_reply_that_an_effect_declares_is_given() -> None:
    given: dict[type[Effect[Any]], set[Any]] = {}
    for driven in all_driven():
        for kind, replies in driven.given.items():
            given.setdefault(kind, set()).update(replies)
    assert given == {kind: set(alternatives(kind)) for kind in effect_kinds() if kind not in OF_DRIVERS}


def effect_kinds() -> set[type[Effect[Any]]]:
    found = [kind for module in MODULES for _, kind in inspect.getmembers(module, inspect.isclass)]
    return {kind for kind in found if issubclass(kind, Effect) and kind not in (Effect, Together)}


def alternatives(kind: Any) -> Iterator[Any]:
    """What an effect's type says that it may be replied."""
    (base,) = kind.__orig_bases__
    (declared,) = get_args(base)
    for one in (declared,) if get_origin(declared) is frozenset else get_args(declared) or (declared,):
        if get_origin(one) is frozenset:
            yield frozenset
        elif get_origin(one) is Literal:
            yield from get_args(one)
        elif one is bool:
            yield from (True, False)
        elif isinstance(one, type) and issubclass(one, Enum):
            yield from one
        else:
            yield None if one in (None, NoneType) else one


def test_every_reply_has_a_meaning_and_every_meaning_a_reply() -> None:
    found: dict[str, set[str]] = {}
    for driven in all_driven():
        for place, seen in driven.steps.items():
            names = place.effect.split(" + ")
            for kind in seen.after:
                for name, reply in zip(names, kind.split(" + "), strict=True):
                    found.setdefault(name, set()).add(reply)
    assert found == {name: set(replies) for name, replies in REPLIES.items()}


def test_a_request_without_an_answer_leads_to_again_or_where_an_entity_was_remembered_to_a_load() -> None:
    for driven in all_driven():
        for place, seen in driven.steps.items():
            for kind, targets in seen.after.items():
                if NO_ANSWER & set(kind.split(" + ")):
                    ends = {one.kind for one in targets if isinstance(one, Outcome)}
                    steps = {one.effect for one in targets if isinstance(one, Place)}
                    loads = steps == {"LoadEntity"} and place.is_of(PROCESSING)
                    assert (ends, steps) == ({"again"}, set()) or (loads and not ends), (str(place), kind)


def test_whatever_a_crash_leaves_has_a_name_and_one_of_those_that_the_index_names_finishes_it() -> None:
    named: set[str] = set()
    finishing: set[tuple[str, str]] = set()
    for chapter in CHAPTERS:
        seen = [seen for part in chapter.parts for seen in part.driven.steps.values()]
        found = who_finishes(crash for one in seen for crash in (*one.before, *one.applied))
        named |= found.keys()
        for kind, by in found.items():
            _, finishers = LEFTOVERS[kind]
            for preset in {preset for presets in by.values() for preset in presets}:
                finished = any(by[one].get(preset) == {True} for one in finishers if one in by)
                assert finished, f"nobody finishes: {kind} ({chapter.name}, {preset}): {by}"
            finishing |= {
                (kind, one) for one, presets in by.items() if any(True in cases for cases in presets.values())
            }
    assert finishing >= {(kind, one) for kind, (_, finishers) in LEFTOVERS.items() for one in finishers}
    assert named == LEFTOVERS.keys()
    assert {one for _, finishers in LEFTOVERS.values() for one in finishers} == FINISHERS.keys()


def before_publishing(preset: str) -> Stored:
    """What is stored if the first attempt dies right before it publishes."""
    start = attempt(STRATEGIES[preset], Memory(), FIRST)
    return play(start, Stored(), lambda after: bool(after.published))[1]


@pytest.mark.parametrize("preset", [OUTBOX, COLOCATED, STREAM])
def test_what_was_committed_and_not_published_is_found_and_gone_after_a_redelivery(preset: str) -> None:
    stored = before_publishing(preset)
    assert [one.kind for one in leftovers(stored)] == ["committed, not published"]
    occasion = Occasion(preset, attempt(STRATEGIES[preset], Memory(), NEW), stored, (FIRST,))
    assert leftovers(redeliver(occasion, stored)) == frozenset()


def test_a_message_that_waits_is_nothing_left_over_once_it_is_acknowledged() -> None:
    strategy = STRATEGIES[WAITING]
    _, held = process(strategy, Stored(), TWO)
    assert leftovers(held) == frozenset()
    assert {one.kind for one in leftovers(replace(held, acknowledged=frozenset()))} == {"held, not acknowledged"}
    _, released = process(strategy, held, ONE)
    assert leftovers(released) == frozenset()


def test_a_message_that_nothing_keeps_held_is_found() -> None:
    stored = crowded()
    result, after = play(attempt(STRATEGIES[WAITING], Memory(), ONE), stored)
    assert isinstance(result, Again)
    assert "held, could be released" in {one.kind for one in leftovers(after)} - {one.kind for one in leftovers(stored)}


class Sourced(VersionStream):
    """A stream whose handlers emit events."""

    def attempt(self, work: Work, memory: Memory) -> Step[Finished | Again]:
        sourced = replace(work, handle=emitting(work.handle), evolve=evolve)
        result = yield from VersionStream.attempt(self, sourced, memory)
        return result


@cache
def emitting(handle: Handle) -> Handle:
    def emit(before: Before, envelope: Envelope) -> Handled:
        return replace(handle(before, envelope), events=(Event("handled", Json("{}")),))

    return emit


def evolve(body: Json | None, events: tuple[Event, ...]) -> Json:
    before = body.value["handled"] if body is not None else 0
    return Json.of({**WHERE, "handled": before + len(events)})


def test_events_change_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the page on streams says."""
    plain = arrows(Driven(stream_attempts()))
    monkeypatch.setitem(cast("dict[str, Strategy]", STRATEGIES), STREAM, Sourced(snapshot_every=2))
    assert arrows(Driven(stream_attempts())) == plain


def test_one_order_for_all_sources_changes_no_step() -> None:
    """As the page on the resequencer says."""
    (received,) = (
        part.driven for chapter in CHAPTERS for part in chapter.parts if part.function is Resequencer.attempt
    )
    assert all(seen.presets.keys() == {WAITING, IN_TIME} for seen in received.steps.values())


def arrows(driven: Driven) -> dict[str, dict[str, set[str]]]:
    """What follows each reply at each step."""
    return {
        str(place): {
            kind: {str(one) if isinstance(one, Place) else one.what for one in then}
            for kind, then in seen.after.items()
        }
        for place, seen in driven.steps.items()
    }


def test_what_is_lost_is_not_finished() -> None:
    (left,) = leftovers(before_publishing(OUTBOX))
    assert left not in leftovers(Stored())
    assert not is_finished(left, Stored())


def test_a_page_stays_readable() -> None:
    assert {name: lines for name, text in pages().items() if (lines := text.count("\n")) > MOST_LINES} == {}


def test_every_link_to_a_step_has_its_heading() -> None:
    for name, text in pages().items():
        headings = [line.lstrip("# ").lower() for line in text.splitlines() if line.startswith("#")]
        anchors = {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in headings}
        assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= anchors, name


def test_a_picture_stays_readable() -> None:
    for name, text in pages().items():
        for picture in text.split("```mermaid")[1:]:
            nodes = [line for line in picture.partition("```")[0].splitlines() if '["' in line]
            assert 0 < len(nodes) <= MOST_NODES, name
