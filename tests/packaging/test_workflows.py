"""What runs elsewhere is pinned to the letter, and asks for commands that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.packaging.sources import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_action_is_pinned_by_its_commit_and_says_its_version(path: Path) -> None:
    uses = re.findall(r"uses: (.+)", path.read_text(encoding="utf-8"))
    assert uses
    assert [use for use in uses if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_each_target_that_a_workflow_makes_is_a_command(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    made = set(re.findall(r"run: make ([a-z][\w-]*)", text)) | set(
        re.findall(r"^ {10}- ([a-z][\w-]*)", text, re.MULTILINE)
    )
    commands = re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert made <= set(commands)


def test_a_release_has_no_secret() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert "id-token: write" in text
    assert "secrets." not in text
