"""The audit's command line: its exit codes, and what it says when something is not as it has to be."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from azure.cosmos import CosmosClient
from pyspark.sql import SparkSession

from demo.stack import create_containers
from exactlyonce import Outbox
from exactlyonce.stores.cosmos.partition import to_library
from local_cosmos.inprocess import RunningEmulator
from spark_jobs import audit
from spark_jobs.job.configuration import Job
from spark_jobs.job.exits import Exit, ending
from tests.spark.application import own
from tests.spark.auditor.app import App, job
from tests.spark.transforms.planting import ref, staged


class Command:
    """The command, with a job file of its own."""

    def __init__(self, cosmos: RunningEmulator, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.database = folder, f"cli-{folder.name}".lower()[:60]
        self.skew = 0.0
        self._cosmos, self._capsys = cosmos, capsys
        self.config: dict[str, Any] = json.loads(job(App(cosmos, self.database, Outbox()), self.database).text())

    def __call__(self, *arguments: str, sleep: Callable[[float], None] = time.sleep) -> tuple[Exit, str, str]:
        """Run it. Returns its exit code, and what it wrote."""
        (self.folder / "job.json").write_text(json.dumps(self.config))
        known = ["--config", str(self.folder / "job.json"), "--out", str(self.folder / "out")]
        run = partial(audit.run, [*known, *arguments], lambda: self._cosmos.now() + self.skew, sleep)
        code = ending(run)
        printed = self._capsys.readouterr()
        return code, printed.out, printed.err


@pytest.fixture
def command(
    cosmos: RunningEmulator,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    spark: SparkSession,
) -> Command:
    monkeypatch.setenv("COSMOS__accountEndpoint", cosmos.endpoint)
    monkeypatch.setenv("COSMOS__accountKey", cosmos.key)
    monkeypatch.delenv("COSMOS__database", raising=False)
    command = Command(cosmos, tmp_path, capsys)
    create_containers(cosmos, command.database)
    own(cosmos, Job.read(command.config))
    return command


def test_empty_containers_have_no_findings_and_a_finding_has_an_exit_code(
    command: Command, cosmos: RunningEmulator
) -> None:
    code, said, progress = command("--checkpoint", str(command.folder / "checkpoint"))
    assert code is Exit.DONE
    assert said.startswith(f"Nothing was found in a full audit of 0 entities in {command.database}.")
    assert "first look, games: 0 documents" in progress
    assert "rule ledger_hole: nothing" in progress
    with CosmosClient(cosmos.endpoint, cosmos.key) as client:
        library = client.get_database_client(command.database).get_container_client("exactlyonce")
        library.create_item({"id": "odd", "pk": "nobody's", "kind": "newcomer"})
    code, said, _ = command("--checkpoint", str(command.folder / "checkpoint"))
    assert code is Exit.FINDINGS
    assert said.startswith(f"1 finding in an incremental audit of 0 entities in {command.database}: unreadable 1.")
    assert "Findings of the last audits, the newest last: 0 (full), 1.\n" in said
    assert json.loads((command.folder / "out" / "summary.json").read_text())["found"]["unreadable"] == 1

    command.config["consumers"] = {}
    code, _, errors = command("--checkpoint", str(command.folder / "checkpoint"))
    assert code is Exit.CONFIGURATION
    assert "is of a job file in which consumers differ" in errors


def test_documents_of_messages_that_nobody_keeps_are_reported_and_are_no_finding(
    command: Command, cosmos: RunningEmulator
) -> None:
    game = ref("range", "game-1")
    with CosmosClient(cosmos.endpoint, cosmos.key) as client:
        library = client.get_database_client(command.database).get_container_client("exactlyonce")
        library.create_item(to_library(game, staged(game, "tx-1-kept")))
    command.config["horizon"] = 0.5  # The document is written now, by the service's clock.
    code, said, _ = command()
    assert code is Exit.DONE
    assert said.startswith(f"Nothing was found in a full audit of 0 entities in {command.database}.")
    assert "Clean-up has 1 document to take of messages that nobody keeps." in said
    assert json.loads((command.folder / "out" / "summary.json").read_text())["garbage"] == 1


def test_a_folder_of_something_else_is_left_alone(command: Command) -> None:
    (command.folder / "out").mkdir()
    (command.folder / "out" / "thesis.txt").write_text("years of work")
    code, _, errors = command()
    assert code is Exit.CONFIGURATION
    assert "holds something else" in errors
    assert (command.folder / "out" / "thesis.txt").read_text() == "years of work"
