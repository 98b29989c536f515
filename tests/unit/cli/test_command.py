"""The command `exactlyonce`: what it finds, what it refuses, and what it loads."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

import exactlyonce
from exactlyonce.cli import command
from tests.packaging.sources import ROOT

Printed = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["exactlyonce"])
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(command, "entry_points", lambda **_: ())


def added(monkeypatch: pytest.MonkeyPatch, name: str, place: str) -> None:
    monkeypatch.setattr(command, "entry_points", lambda **_: (EntryPoint(name, place, command.GROUP),))


def test_the_command_says_its_version(capsys: Printed) -> None:
    assert command.main(["--version"]) == 0
    assert capsys.readouterr().out == f"exactlyonce {exactlyonce.__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_the_command_lists_its_commands(arguments: list[str], capsys: Printed) -> None:
    assert command.main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "  ops      operate an application: parked messages, entities, retention" in lines
    assert [line.split()[0] for line in lines[4:]] == list(command.COMMANDS)


def test_an_added_command_is_listed_and_runs_with_its_arguments(
    monkeypatch: pytest.MonkeyPatch, capsys: Printed
) -> None:
    added(monkeypatch, "greet", f"{__name__}:greet")
    assert command.main(["greet", "--loud"]) == 7
    assert capsys.readouterr().out == "['exactlyonce greet', '--loud']\n"
    assert sys.path[0] == ""
    command.main([])
    assert f"  greet    of {__name__.partition('.')[0]}\n" in capsys.readouterr().out


def greet() -> int:
    print(sys.argv)
    return 7


def test_an_unknown_command_is_refused_with_those_there_are(capsys: Printed) -> None:
    assert command.main(["opps"]) == 2
    assert (
        capsys.readouterr().err
        == "There is no command 'opps'; there are: audit, cleanup, console, dev, doctor, new, ops.\n"
    )


def test_a_command_of_another_distribution_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: Printed
) -> None:
    assert command.main(["dev"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("'exactlyonce dev' is not installed. ")
    assert "exactlyonce-dev" in said
    added(monkeypatch, "dev", f"{__name__}:greet")
    assert command.main(["dev"]) == 7


def test_the_audit_needs_spark(monkeypatch: pytest.MonkeyPatch, capsys: Printed) -> None:
    monkeypatch.setattr(command, "find_spec", lambda _: None)
    assert command.main(["audit"]) == 2
    assert "extra 'spark'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["ops", "audit", "cleanup"])
def test_own_commands_explain_themselves(name: str, capsys: Printed) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main([name, "--help"])
    assert ended.value.code == 0
    assert "usage:" in capsys.readouterr().out


def test_help_and_version_load_no_client_of_azure() -> None:
    code = (
        "import sys; from exactlyonce.cli.command import main; main(['--version'])\n"
        "try: main(['ops', '--help'])\n"
        "except SystemExit: print([name for name in sys.modules if name.split('.')[0] in ('azure', 'aiohttp')])"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"


def test_an_application_with_a_key_and_storage_queues_loads_no_sdk_but_those() -> None:
    """Each takes a tenth of a second of a cold start, and of every command."""
    code = (
        "import sys, exactlyonce.cli.commands, function_app\n"
        "assert function_app.once._parts.resources.addresses\n"
        "sdks = ('azure.cosmos', 'azure.identity', 'azure.servicebus', 'azure.storage.blob', 'azure.storage.queue')\n"
        "print([name for name in sdks if name in sys.modules])"
    )
    settings = {
        "COSMOS__accountEndpoint": "https://a.example",
        "COSMOS__accountKey": "a2V5",
        "COSMOS__database": "d",
        "AzureWebJobsStorage": "UseDevelopmentStorage=true",
    }
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, cwd=ROOT, env={**os.environ, **settings}, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.strip()) == (0, "['azure.cosmos', 'azure.storage.queue']"), run.stderr
