"""Locks: what is installed is pinned, hashed, complete, and says nothing about where one machine got it from."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any

import pytest
import tomllib
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from devtools.locks import PARTS, cut, wanted
from tests.packaging.sources import ROOT

LOCK = (ROOT / "locks" / "all.txt").read_text()
LOCKS = sorted((ROOT / "locks").glob("*.txt"))
SPARK_4 = (ROOT / "locks" / "spark4.txt").read_text()
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
PINNED = re.compile(r"^([A-Za-z0-9._-]+)(\[[a-z,]+\])?==([^ ;]+)( ;[^\\]+)?((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$")


def requirements(text: str) -> list[str]:
    """The requirements of a lock, each with its hashes; comments left out."""
    lines = "\n".join(line for line in text.splitlines() if not line.strip().startswith("#"))
    return [part for part in re.split(r"\n(?=\S)", lines.strip()) if part]


def pins(text: str) -> dict[str, Version]:
    matches = (PINNED.match(requirement) for requirement in requirements(text))
    return {canonicalize_name(found[1]): Version(found[3]) for found in matches if found}


def unpinned(text: str) -> list[str]:
    return [requirement.splitlines()[0] for requirement in requirements(text) if not PINNED.match(requirement)]


def uncovered(text: str, wanted: list[str]) -> list[str]:
    found = pins(text)
    needed = [Requirement(item) for item in wanted]
    return [
        str(item)
        for item in needed
        if (version := found.get(canonicalize_name(item.name))) is None or version not in item.specifier
    ]


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_everything_is_pinned_and_hashed(path: Path) -> None:
    text = path.read_text()
    assert unpinned(text) == []
    assert pins(text)


@pytest.mark.parametrize("part", PARTS)
def test_every_part_holds_what_the_project_asks_for_there(part: str) -> None:
    assert uncovered(cut(LOCK, wanted(part)), wanted(part)) == []


def test_a_part_holds_what_its_packages_need() -> None:
    names = set(pins(cut(LOCK, wanted("dev"))))
    needed = [Requirement(item) for name in names for item in present(name)]
    assert {canonicalize_name(item.name) for item in needed if not item.marker or item.marker.evaluate()} <= names


def present(name: str) -> list[str]:
    """What an installed package needs; nothing of one that is for other machines only."""
    try:
        return requires(name) or []
    except PackageNotFoundError:
        return []


def test_the_published_requirements_are_the_lock_without_hashes_so_that_a_line_can_be_added() -> None:
    published = [line for line in (ROOT / "requirements.txt").read_text().splitlines() if not line.startswith("#")]
    assert [line.split()[0] for line in published] == [
        requirement.split()[0] for requirement in requirements(cut(LOCK, wanted("app")))
    ]


def test_spark_4_is_the_only_other_version() -> None:
    assert set(pins(SPARK_4)) & set(pins(LOCK)) == {"pyspark"}
    (spark,) = PROJECT["dependency-groups"]["spark4"]
    assert pins(SPARK_4)["pyspark"] in Requirement(spark).specifier


def test_a_part_is_cut_before_anything_is_installed() -> None:
    command = [sys.executable, "-S", "-m", "devtools.locks", "docs"]
    written = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert written == cut(LOCK, wanted("docs"))


def test_a_part_has_every_version_of_what_it_leads_to_and_nothing_else() -> None:
    told = {
        "a": "a==1",
        "b-c": "b-c==1 ; python_version < '3.11'",
        "b-c of later": "b-c==2 ; python_version >= '3.11'",
        "d": "d==1",
        "e": "e==1",
    }
    asking = {
        "a": "-c requirements.txt, b.c (pyproject.toml)",
        "b-c": "a",
        "b-c of later": "a",
        "d": "e, b-c",
        "e": "a.b",
    }
    lock = {name: f"{line} \\\n    {HASH}\n    # via {asking[name]}\n" for name, line in told.items()}
    assert cut("".join(lock.values()), ["A[x]>=1 ; python_version < '4'"]) == "".join([*lock.values()][:4])
    assert cut("".join(lock.values()), ["B_c"]) == "".join([*lock.values()][1:4])


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
