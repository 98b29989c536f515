"""What the pages point at is there: files, headings, and commands."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.packaging.sources import ROOT, name_of

FOLDERS = ("docs", "infra", "benchmarks", "spark_jobs", "exactlyonce", "verification", "demo", "devtools", "packages")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def pages() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md"))])


def prose(text: str) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Where links into a page may lead, by the rule of GitHub: lower case, hyphens for spaces, no punctuation."""
    headings = re.findall(r"^#+ (.+)$", prose(page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(text: str, folder: Path, own: set[str]) -> list[str]:
    """Relative links of a page that lead nowhere.

    Args:
        text: of the page.
        folder: in which it lies.
        own: its anchors.
    """
    dead = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(text)):
        place, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", place):
            continue
        target = folder / unquote(place)
        known = anchors(target) if place and target.suffix == ".md" and target.is_file() else own
        if not target.exists() or (anchor and anchor not in known):
            dead.append(link)
    return dead


def commands(text: str) -> list[str]:
    """What a page has people type after `make`, in code: targets, and variables with their values."""
    lines = re.findall(r"`make ([^`\n]+)`", prose(text))
    for block in re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        lines += re.findall(r"^make ([^#\n]+)", block, re.MULTILINE)
    return [word for line in lines for word in line.split()]


def unknown_commands(text: str) -> list[str]:
    """Those that the Makefile does not know."""
    known = set(re.findall(r"^([A-Za-z0-9./-]+) ?(?:\?=|:=|:)", MAKEFILE, re.MULTILINE))
    return [word for word in commands(text) if word.split("=")[0] not in known]


def test_every_relative_link_leads_somewhere() -> None:
    dead = {name_of(page): dead_links(page.read_text(), page.parent, anchors(page)) for page in pages()}
    assert {name: links for name, links in dead.items() if links} == {}


def test_every_make_command_exists() -> None:
    unknown = {name_of(page): unknown_commands(page.read_text()) for page in pages()}
    assert {name: words for name, words in unknown.items() if words} == {}


def test_there_are_links_and_commands_to_look_at() -> None:
    texts = [page.read_text() for page in pages()]
    assert sum(len(re.findall(r"\]\(", prose(text))) for text in texts) > 50
    assert {"test", "demo", "test-azure", "SHOTS=200"} <= {word for text in texts for word in commands(text)}


@pytest.mark.parametrize("link", ["nowhere.md", "docs/nowhere.md#a", "README.md#no-such-heading", "#no-such-heading"])
def test_a_link_that_leads_nowhere_is_noticed(link: str) -> None:
    text = f"[one]({link}) [two](README.md#try-it) [three](https://example.org/x) [four](#here)"
    assert dead_links(text, ROOT, {"here"}) == [link]


@pytest.mark.parametrize("text", ["`make tset`", "`make demo SHOT=1`", "```sh\nmake tset\n```\n"])
def test_a_command_that_does_not_exist_is_noticed(text: str) -> None:
    assert len(unknown_commands(text)) == 1
    assert unknown_commands("We make things. `make demo SHOTS=1 STRATEGY=outbox|naive`") == []


def test_decisions_are_numbered_without_gap_or_double() -> None:
    files = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    heads = [path.read_text().partition("\n")[0] for path in files]
    assert [path.name.partition("-")[0] for path in files] == [f"{number:04}" for number in range(1, len(files) + 1)]
    assert [head.partition(".")[0] for head in heads] == [f"# {number}" for number in range(1, len(files) + 1)]
