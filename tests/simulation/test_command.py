"""What the command prints: a table, and for a violation how to see it again."""

from __future__ import annotations

import sys

import pytest

from verification.simulation.__main__ import main


def simulate(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["simulation", "--seconds", "0", *arguments])
    monkeypatch.setenv("COLUMNS", "120")
    return main()


def test_an_episode_ends_with_a_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(monkeypatch, "--messages", "50", "--seed", "5") == 0
    printed = capsys.readouterr().out
    for line in ("messages", "crash", "write: delayed, reply lost", "pages were read", "1 (5 to 5)"):
        assert line in printed


def test_a_violation_ends_with_its_seed_its_story_and_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulate(monkeypatch, "--messages", "100", "--seed", "2", "--twin", "publish before commit") == 1
    printed = capsys.readouterr().out
    assert "make simulate SEED=2 SECONDS=0 MESSAGES=100 TWIN='publish before commit'" in printed
    assert "was published with different contents" in printed
    assert "accepted web-" in printed
