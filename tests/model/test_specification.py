"""The pages of `docs/protocols` tell what the code does: all of it, and nothing else."""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from collections.abc import Iterator
from enum import Enum
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import pytest

from devtools.modelcheck.specification.chapters import CHAPTERS
from devtools.modelcheck.specification.diagrams import NO_ANSWER
from devtools.modelcheck.specification.driving import Driven, Outcome
from devtools.modelcheck.specification.files import FOLDER, pages
from devtools.modelcheck.specification.leftovers import is_finished, leftovers, redeliver
from devtools.modelcheck.specification.occasions import FIRST, NEW, crashed
from devtools.modelcheck.specification.pages import driven_parts, finishes
from devtools.modelcheck.specification.playing import PRESETS, Occasion, attempt
from devtools.modelcheck.specification.stored import Stored
from devtools.modelcheck.specification.vocabulary import LEFTOVERS, REPLIES, REQUESTS
from devtools.modelcheck.specification.words import STEPS, words_of
from exactlyonce import effects
from exactlyonce.effects import Effect, Together
from exactlyonce.handling.attempts import Memory
from tests.packaging.sources import files

COMMAND = "python -m devtools.modelcheck.specification"
MOST_NODES = 25
TOLD = ("outbox", "fencing", "settling", "retention")
"""The strategies that pages tell step by step. Those that keep their records beside the entity are told in prose."""
NOT_TOLD = ("clean_blobs", "_committed")
"""Blobs have a page of their own, by hand."""


def all_driven() -> list[Driven]:
    return [driven for chapter in CHAPTERS for _, driven in driven_parts(chapter)]


def keys() -> list[str]:
    return [place.key for driven in all_driven() for place in driven.steps]


@pytest.mark.parametrize("name", ["README.md", *(chapter.name for chapter in CHAPTERS)])
def test_a_page_is_what_the_code_says(name: str) -> None:
    path = FOLDER / name
    written = path.read_text(encoding="utf-8") if path.exists() else ""
    assert written == pages()[name], f"The strategies, or the words about them, have changed: run `{COMMAND}`."


def test_every_step_has_words_and_all_words_have_a_step() -> None:
    assert {words_of(key) for key in keys()} == set(STEPS)


def test_a_step_is_one_place_in_the_code() -> None:
    assert [key for key, times in Counter(keys()).items() if times > 1] == []


def test_every_request_in_the_code_is_a_step() -> None:
    """Counted for each function: requests in its text, and places in it where a strategy was seen waiting."""
    seen: dict[str, set[int]] = {}
    for driven in all_driven():
        for place in driven.steps:
            seen.setdefault(place.key.partition(":")[0].rpartition("/")[2], set()).add(place.path[-1])
    assert {function: len(places) for function, places in seen.items()} == dict(Counter(requests()))


def requests() -> Iterator[str]:
    """Names of the functions that ask for effects, once for each."""
    for path in files("exactlyonce/strategies"):
        if path.stem not in TOLD:
            continue
        tree = ast.parse(path.read_text())
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            if function.name in NOT_TOLD:
                continue
            asked = (node.value for node in ast.walk(function) if isinstance(node, ast.YieldFrom))
            yield from (function.name for one in asked if is_effect(one))


def is_effect(asked: ast.expr) -> bool:
    """Whether what follows `yield from` is an effect: made there, or held by a variable; all else is a call of a strategy."""
    return isinstance(asked, ast.Name) or ast.unparse(asked).partition("(")[0] in REQUESTS.keys() | {"Together"}


def test_every_reply_that_an_effect_declares_is_given() -> None:
    given: dict[type[Effect[Any]], set[Any]] = {}
    for driven in all_driven():
        for kind, replies in driven.given.items():
            given.setdefault(kind, set()).update(replies)
    assert given == {kind: set(alternatives(kind)) for kind in effect_kinds()}


def effect_kinds() -> set[type[Effect[Any]]]:
    found = (kind for _, kind in inspect.getmembers(effects, inspect.isclass) if issubclass(kind, Effect))
    return {kind for kind in found if kind not in (Effect, Together, effects.LoadProcessed)}


def alternatives(kind: Any) -> Iterator[Any]:
    """What an effect's type says that it may be replied."""
    (base,) = kind.__orig_bases__
    (declared,) = get_args(base)
    for one in get_args(declared) or (declared,):
        if get_origin(one) is Literal:
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
            names = place.key.partition(": ")[2].split(" + ")
            for kind in seen.after:
                for name, reply in zip(names, kind.split(" + "), strict=True):
                    found.setdefault(name, set()).add(reply)
    assert found == {name: set(replies) for name, replies in REPLIES.items()}
    assert REQUESTS.keys() == REPLIES.keys()


def test_a_request_without_an_answer_always_leads_to_again() -> None:
    for driven in all_driven():
        for place, seen in driven.steps.items():
            for kind, targets in seen.after.items():
                if NO_ANSWER & set(kind.split(" + ")):
                    assert {one.kind for one in targets if isinstance(one, Outcome)} == {"again"}, (place.key, kind)
                    assert all(isinstance(one, Outcome) for one in targets), (place.key, kind)


def test_whatever_a_crash_leaves_has_a_name_and_somebody_finishes_it() -> None:
    assert {kind for chapter in CHAPTERS for kind in finishes(chapter)} == LEFTOVERS.keys()
    for chapter in CHAPTERS:
        for kind, by in finishes(chapter).items():
            for preset in {preset for presets in by.values() for preset in presets}:
                assert any(presets.get(preset) for presets in by.values()), f"nobody finishes: {kind} ({preset})"


@pytest.mark.parametrize("preset", PRESETS)
def test_what_was_committed_and_not_published_is_found_and_gone_after_a_redelivery(preset: str) -> None:
    stored = crashed(PRESETS[preset], Stored(), FIRST, "published")
    assert [one.kind for one in leftovers(stored)] == ["committed, not published"]
    occasion = Occasion(preset, attempt(PRESETS[preset], Memory(), NEW), stored, (FIRST,))
    assert leftovers(redeliver(occasion, stored)) == frozenset()


def test_what_is_lost_is_not_finished() -> None:
    (left,) = leftovers(crashed(PRESETS["Outbox()"], Stored(), FIRST, "published"))
    assert left not in leftovers(Stored())
    assert not is_finished(left, Stored())


def test_a_picture_stays_readable() -> None:
    for name, text in pages().items():
        for picture in text.split("```mermaid")[1:]:
            nodes = [line for line in picture.partition("```")[0].splitlines() if '["' in line]
            assert 0 < len(nodes) <= MOST_NODES, name
