"""Every step of a protocol has a comment with its title, and its effect a place in the pages of `docs/protocols`."""

from __future__ import annotations

import ast
import re

from exactlyonce.effects.effect import Effect
from exactlyonce.telemetry.words import words_at
from tests.packaging.sources import ROOT, files, name_of
from verification.scenarios.catalogue import everything
from verification.twins.all_effects import effects

PAGES = [path.read_text() for path in (ROOT / "docs" / "protocols").glob("*.md")]
EFFECTS = {name for name, kind in vars(effects).items() if isinstance(kind, type) and issubclass(kind, Effect)}
ASKED = [
    (path, node)
    for path in files("exactlyonce/protocols")
    for node in ast.walk(ast.parse(path.read_text()))
    if isinstance(node, ast.YieldFrom)
]


def is_effect(asked: ast.expr) -> bool:
    """Whether a step asks for an effect, made there or held by a variable; all else is a call of a generator."""
    return isinstance(asked, ast.Name) or ast.unparse(asked).partition("(")[0] in EFFECTS | {"paid_of", "first_look"}


def test_every_step_has_a_comment_with_its_title() -> None:
    steps = [(path, node.lineno) for path, node in ASKED if is_effect(node.value)]
    assert len(steps) > 50
    assert [f"{name_of(path)}:{line}" for path, line in steps if words_at(((str(path), line),)) is None] == []


def test_the_pages_name_every_effect_of_a_step_and_worlds_that_exist() -> None:
    asked = {name for _, node in ASKED for name in re.findall(r"\w+", ast.unparse(node))} & EFFECTS - {"Together"}
    assert {name for name in asked if not any(f"`{name}`" in page for page in PAGES)} == set()
    sections = [page.partition("## Worlds")[2] for page in PAGES]
    told = [
        text
        for section in sections
        for text in re.findall(r"`(?:--only )?([a-z -]*[a-z])`", section)
        if text != "--only"
    ]
    assert [text for text in told if not any(text in scenario.name for scenario in everything())] == []
