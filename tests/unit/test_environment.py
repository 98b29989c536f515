"""Settings of a developer's machine: added to the environment, or refused in a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from exactlyonce import ConfigurationError
from exactlyonce.environment import FILE, use_local_settings
from tests.unit.operated import InMemory, Run, app, run

__all__ = ["app", "run"]


def write(folder: Path, content: object) -> None:
    (folder / FILE).write_text(json.dumps(content), encoding="utf-8-sig")


def test_the_environment_wins_and_gets_what_it_lacks(tmp_path: Path) -> None:
    write(tmp_path, {"Values": {"A": "file", "B": "file"}})
    environment = {"A": "environment"}
    use_local_settings(tmp_path, environment)
    assert environment == {"A": "environment", "B": "file"}


def test_without_a_file_or_values_nothing_is_added(tmp_path: Path) -> None:
    environment: dict[str, str] = {}
    use_local_settings(tmp_path, environment)
    write(tmp_path, {})
    use_local_settings(tmp_path, environment)
    assert environment == {}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "cannot be read"),
        ("[]", "has to be an object"),
        ('{"Values": []}', "has to be an object"),
        ('{"Values": {"A": 1}}', "in quotation marks"),
        ('{"IsEncrypted": true, "Values": {"A": "x"}}', "func settings decrypt"),
    ],
)
def test_a_file_that_the_host_would_not_read_is_refused(content: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(content)
    environment: dict[str, str] = {}
    with pytest.raises(ConfigurationError, match=sentence):
        use_local_settings(tmp_path, environment)
    assert environment == {}


def test_operators_commands_do_not_mix_them_with_the_settings_of_another_account(
    app: InMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COSMOS__accountEndpoint", "https://shop.example/")
    (tmp_path / FILE).write_text("{")
    assert run("parked").code == 0


def test_operators_commands_use_them(app: InMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / FILE).write_text("{")
    ran = run("parked")
    assert ran.code == 2
    assert ran.err.startswith("ConfigurationError: local.settings.json cannot be read")
