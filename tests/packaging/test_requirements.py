"""Locks: what is installed is pinned, hashed, complete, and says nothing about where one machine got it from."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import tomllib
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.packaging.sources import ROOT

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
APP = ROOT / "locks" / "app.txt"
LOCKS = [APP, *sorted(set((ROOT / "locks").glob("*.txt")) - {APP})]
GROUPS = {
    "app.txt": [],
    "amqp.txt": ["amqp"],
    "dev.txt": ["test", "devtools", "check", "amqp-build"],
    "docs.txt": ["docs"],
    "engine.txt": [],
    "peers.txt": ["peers", "devtools"],
    "spark4.txt": ["spark4"],
    "test.txt": ["test", "devtools"],
}
ON_TOP = ("amqp.txt", "spark4.txt")
"""The locks that are installed on top of another one, and so hold their own group only."""
PINNED = re.compile(r"^([A-Za-z0-9._-]+)(\[[a-z,]+\])?==([^ ;]+)( ;[^\\]+)?((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$")


def requirements(text: str) -> list[str]:
    """The requirements of a lock, each with its hashes; comments left out."""
    lines = "\n".join(line for line in text.splitlines() if not line.strip().startswith("#"))
    return [one for one in re.split(r"\n(?=\S)", lines.strip()) if one]


def pins(text: str) -> dict[str, Version]:
    matches = (PINNED.match(one) for one in requirements(text))
    return {canonicalize_name(found[1]): Version(found[3]) for found in matches if found}


def unpinned(text: str) -> list[str]:
    return [one.splitlines()[0] for one in requirements(text) if not PINNED.match(one)]


def uncovered(text: str, wanted: list[str]) -> list[str]:
    found = pins(text)
    needed = [Requirement(one) for one in wanted]
    return [
        str(one)
        for one in needed
        if (version := found.get(canonicalize_name(one.name))) is None or version not in one.specifier
    ]


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_everything_is_pinned_and_hashed(path: Path) -> None:
    text = path.read_text()
    assert unpinned(text) == []
    assert pins(text)


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_every_lock_holds_what_the_project_asks_for_there(path: Path) -> None:
    project, groups = PROJECT["project"], PROJECT["dependency-groups"]
    shared = [] if path.name in ON_TOP else [*project["dependencies"], *project["optional-dependencies"]["azure"]]
    spark = project["optional-dependencies"]["spark"] if path.name == "dev.txt" else []
    wanted = [*shared, *spark, *(one for name in GROUPS[path.name] for one in groups[name])]
    assert uncovered(path.read_text(), wanted) == []


def test_what_is_published_is_the_lock_without_hashes_so_that_a_line_can_be_added() -> None:
    published = [line for line in (ROOT / "requirements.txt").read_text().splitlines() if not line.startswith("#")]
    assert published == [one.partition(" \\\n")[0] for one in requirements(APP.read_text())]


def test_what_both_locks_hold_they_hold_in_the_same_version() -> None:
    app, *others = (pins(path.read_text()) for path in LOCKS)
    for other in others:
        assert {name: other[name] for name in app if name in other} == {
            name: app[name] for name in app if name in other
        }


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_no_lock_of_python_says_where_from(path: Path) -> None:
    assert places(path.read_text()) == []


def test_no_lock_of_node_says_where_from() -> None:
    lock = json.loads((ROOT / "package-lock.json").read_text())
    assert [name for name, package in lock["packages"].items() if "resolved" in package] == []
    assert [name for name, package in lock["packages"].items() if name and "integrity" not in package] == []


def places(text: str) -> list[str]:
    return re.findall(r"^.*(?:https?://|--index-url|--extra-index-url|--find-links|file:| @ ).*$", text, re.MULTILINE)


HASH = f"--hash=sha256:{'0' * 64}"


@pytest.mark.parametrize("bad", ["a>=1", "a==1", f"a>=1 \\\n    {HASH}", f"a==1 \\\n    {HASH[:-1]}", "-e ."])
def test_a_requirement_that_is_not_pinned_and_hashed_is_noticed(bad: str) -> None:
    good = f"b[x]==1.0 ; python_version < '3.11' \\\n    {HASH} \\\n    {HASH}"
    assert unpinned(f"{good}\n    # via somebody\n{bad}") == [bad.splitlines()[0]]
    assert pins(good) == {"b": Version("1.0")}


def test_a_requirement_that_is_missing_or_too_old_is_noticed() -> None:
    text = f"a==1.0 \\\n    {HASH}"
    assert uncovered(text, ["a>=2", "b", "A<2"]) == ["a>=2", "b"]


@pytest.mark.parametrize("line", ["--index-url https://example.org", "a @ file:///x", "--find-links x", "# http://x"])
def test_a_place_is_noticed(line: str) -> None:
    assert places(f"b==1\n{line}\n") == [line]
