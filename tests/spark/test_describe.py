"""The job file of an application, written from what it declares."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from demo.strategies import STRATEGIES
from exactlyonce import ConfigurationError
from handlers.leader_board import boards, leader_board
from handlers.shooting_range import ranges, shooting_range
from spark_jobs.describe import entities_of, main
from spark_jobs.job.configuration import Job
from spark_jobs.job.exits import Exit, ending

ARGUMENTS = [
    "an_app",
    "--database",
    "shooting-range",
    "--consumer",
    "scores=board",
    "--library",
    "once",
    "--endpoint",
    "https://a/",
]


@pytest.fixture(autouse=True)
def app(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """An application's module, as `import` finds it."""
    module = ModuleType("an_app")
    module.boards, module.ranges = boards, ranges.using(STRATEGIES["stream"])  # type: ignore[attr-defined]
    module.again = module.boards  # type: ignore[attr-defined]
    module.leader_board, module.others = leader_board, (shooting_range,)  # type: ignore[attr-defined]
    monkeypatch.setitem(__import__("sys").modules, "an_app", module)
    return module


def test_it_is_a_job_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(ARGUMENTS) is Exit.DONE
    written = json.loads(capsys.readouterr().out)
    assert written == {
        "database": "shooting-range",
        "endpoint": "https://a/",
        "entities": [
            {"type": "board", "container": "boards", "partition_key": ["/gameId"], "protocol": "resequencer"},
            {"type": "range", "container": "games", "partition_key": ["/gameId"], "protocol": "stream"},
        ],
        "library": "once",
        "consumers": {"leader-board": "board", "shooting-range": "range", "scores": "board"},
    }
    assert Job.read(written).library == "once"


def test_an_app_finds_the_settings_of_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "reading_app.py").write_text("import os\nfrom an_app import boards, ranges\nos.environ['SHOP__name']\n")
    (tmp_path / "local.settings.json").write_text('{"Values": {"SHOP__name": "shop"}}')
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(os, "environ", {})
    assert main(["reading_app", *ARGUMENTS[1:]]) is Exit.DONE
    assert '"container": "boards"' in capsys.readouterr().out


def test_a_module_without_entities_is_named() -> None:
    with pytest.raises(ConfigurationError, match="module empty has no entities"):
        entities_of(ModuleType("empty"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["absent_app", "--database", "d"], "absent_app cannot be imported: No module named 'absent_app'"),
        (["an_app", "--database", "d", "--consumer", "board"], "has to be DESTINATION=TYPE"),
        (["an_app", "--database", "d", "--consumer", "q=score"], "'score' reads 'q', which is none of the entities"),
    ],
)
def test_bad_usage_is_reported_in_one_sentence(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[Any]
) -> None:
    assert ending(lambda: main(arguments)) is Exit.CONFIGURATION
    printed = capsys.readouterr()
    assert words in printed.err
    assert printed.out == ""


def test_usage_that_argparse_refuses_ends_with_the_same_code() -> None:
    with pytest.raises(SystemExit) as ended:
        main(["an_app"])
    assert ended.value.code == Exit.CONFIGURATION
