"""Runs the tests of Microsoft's SDK for Python against the emulator: `python -m local_cosmos_tests.suites.python_sdk`.

They come with the source distribution, which pip downloads. The command runs those marked for an emulator, for queries and for
long runs; some of them send no request, and test the SDK alone. Each file of them gets an emulator of its own. Each failure has
its cause in `python_sdk.json`. The command writes `docs/python-sdk.md`, and fails for a failure without a cause.

All of them take an hour, most of it asleep. With `--folder` a run that was cut off goes on after the last file that ended.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from local_cosmos.inprocess import running_emulator
from local_cosmos.semantics.account import AccountSettings
from local_cosmos_tests.suites.judging import DOCS, Outcome, judge, outcomes_in

VERSION: Final = "4.17.1"
MARKS: Final = "cosmosEmulator or cosmosLong or cosmosQuery"
PAGE: Final = DOCS / "python-sdk.md"
CAUSES: Final = Path(__file__).with_suffix(".json")
_HEAD: Final = """# The tests of the SDK for Python

azure-cosmos {version} comes with its own tests. `python -m local_cosmos_tests.suites.python_sdk` downloads them, runs those
that are marked for an emulator, for queries and for long runs, and writes this page. Each that fails has its cause below;
`local_cosmos_tests/suites/python_sdk.json` names them.

| tests | run | as the service | not | skipped by the SDK |
| --- | ---: | ---: | ---: | ---: |"""

_TOOLS: Final = (
    "aiohttp==3.14.5",
    "azure-identity==1.27.0",
    "pytest==9.2.0",
    "pytest-asyncio==1.5.0",
    "pytest-timeout==2.4.0",
)
_OPTIONS: Final = "-q -p sdk_reporter -p no:cacheprovider --show-capture no --tb short --timeout 600"

_MOST_SECONDS: Final = 1_800
"""For a file of tests."""

_STANDARD_ADDRESS: Final = "https://localhost:8081/"
"""Of the account, in the SDK's tests: only there they take it for an emulator."""

_HELPERS: Final = {
    "__init__.py": "",
    "azure_recorded_testcase.py": "def get_credential(is_async=False):\n    raise RuntimeError('an emulator has a key')\n",
    "helpers.py": "def is_live():\n    return is_live._cache\n",
}
"""What the SDK's tests import from elsewhere in the repository that they come from."""


def main() -> int:
    """Run the tests and write the page; 1 if a failure has no cause."""
    parser = argparse.ArgumentParser(prog="python -m local_cosmos_tests.suites.python_sdk", description=__doc__)
    parser.add_argument(
        "--folder", type=Path, help="for the SDK's files and the outcomes, kept; default: a temporary one"
    )
    parser.add_argument("-k", dest="chosen", default="", help="run these only, and write no page")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        outcomes = list(run((options.folder or Path(temporary)).resolve(), options.chosen))
    return judge(outcomes, CAUSES, None if options.chosen else PAGE, head(outcomes))


def run(folder: Path, chosen: str) -> Iterator[Outcome]:
    """The outcomes of the tests, file by file.

    Args:
        folder: For all files; those of tests that have their outcomes in it are not run again.
        chosen: An expression of pytest's `-k`; empty for all tests, whose outcomes are kept.
    """
    tests, python, kept = _unpack(folder), _environment(folder), folder / "outcomes"
    kept.mkdir(exist_ok=True)
    for file in sorted(tests.glob("test_*.py")):
        outcomes = kept / f"{file.stem}.jsonl"
        if chosen or not outcomes.exists():
            part = kept / f"{file.stem}.part"
            _run_file(file, python, part, chosen)
            lines = part.read_text("utf-8")
            part.unlink() if chosen else part.rename(outcomes)
        else:
            lines = outcomes.read_text("utf-8")
        yield from (item._replace(test=item.test.removeprefix("tests/")) for item in outcomes_in(lines))


def _run_file(file: Path, python: Path, outcomes: Path, chosen: str) -> None:
    """Run the tests of a file against an emulator of their own, and write their outcomes."""
    outcomes.write_text("", encoding="utf-8")
    tests = file.parent
    settings = AccountSettings(throughput_of_a_partition=6_000, host="127.0.0.1")
    with running_emulator(settings, tls=True) as emulator:
        _let_find(tests, emulator.endpoint.replace("127.0.0.1", "localhost"))
        try:
            subprocess.run(
                [python, "-m", "pytest", *_OPTIONS.split(), "-m", MARKS, "-k", chosen, file],
                cwd=tests.parent,
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join((str(tests.parent.parent / "helpers"), str(Path(__file__).parent))),
                    "SDK_OUTCOMES": str(outcomes),
                },
                timeout=_MOST_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            cut_off = Outcome(file.name, "failed", f"takes longer than {_MOST_SECONDS} seconds")
            with outcomes.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(cut_off._asdict()) + "\n")


def head(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The first lines of the page."""
    yield _HEAD.format(version=VERSION)
    asking = [outcome for outcome in outcomes if outcome.requests]
    alone = [outcome for outcome in outcomes if not outcome.requests]
    for name, some in (("that send requests", asking), ("of the SDK alone", alone)):
        passed, failed, skipped = (
            sum(item.outcome == ended for item in some) for ended in ("passed", "failed", "skipped")
        )
        yield f"| {name} | {passed + failed} | {passed} | {failed} | {skipped} |"


def _unpack(folder: Path) -> Path:
    """The folder of the SDK's tests, with what they import from elsewhere beside it."""
    helpers = folder / "helpers" / "devtools_testutils"
    helpers.mkdir(parents=True, exist_ok=True)
    for name, text in _HELPERS.items():
        (helpers / name).write_text(text, encoding="utf-8")
    source = folder / f"azure_cosmos-{VERSION}"
    if not source.exists():
        wanted = ("--no-deps", "--no-binary", ":all:", f"azure-cosmos=={VERSION}")
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", *wanted, "-d", folder], check=True)
        with tarfile.open(folder / f"azure_cosmos-{VERSION}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
    return source / "tests"


def _environment(folder: Path) -> Path:
    """A Python with the SDK and what its tests need."""
    environment = folder / "environment"
    python = environment / "bin" / "python"
    if not python.exists():
        venv.create(environment, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", f"azure-cosmos=={VERSION}", *_TOOLS], check=True)
    return python


def _let_find(tests: Path, address: str) -> None:
    """Let the tests find the account at an address."""
    settings = tests / "test_config.py"
    original = settings.with_suffix(".original")
    if not original.exists():
        original.write_bytes(settings.read_bytes())
    settings.write_text(original.read_text("utf-8").replace(_STANDARD_ADDRESS, address), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
