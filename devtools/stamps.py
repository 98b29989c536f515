"""Verdicts that still hold: a suite that passed needs no second run as long as everything that it depends on is the same.

    python -m devtools.stamps --also package-lock.json --tool node packages/local-cosmos packages/function-host -- pytest -q

runs `pytest -q` with the folders appended for which no verdict holds, and not at all where one holds for each. Every folder has
a verdict of its own. It is a function of the folder's content, of what else is named, of the command, and of this environment:
Python, installed packages, and which tools there are. So it is kept by the digest of these, in `.make/stamps`, which is never
committed: a fresh clone runs everything, and so does every process with `CI` in its environment.

With `--tests tests/spark:infra/synapse` every test file in the first folder has a verdict of its own, too. Its inputs are the
Python files that it imports, directly or not (`devtools.affected` follows the imports); data files in the test folder and in
the folders of the imported files; and the paths named after the folder, which its tests read without an import.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import distributions
from pathlib import Path
from typing import Final

from devtools.affected import Imports, python_files

STAMPS: Final = Path(".make/stamps")
_MADE: Final = {"__pycache__", "node_modules", "target", "dist", "build"}
"""Folders that are made from the others. So is everything whose name begins with a dot."""


class Stamps:
    """The verdicts that hold: one empty file for each, so that worktrees may share the folder.

    Args:
        folder: where they are; made when the first one is kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def holds(self, digest: str) -> bool:
        """Whether the inputs with this digest have passed."""
        return (self._folder / digest).is_file()

    def keep(self, digest: str) -> None:
        """The inputs with this digest have passed."""
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / digest).touch()


def digest_of(places: Iterable[Path], facts: Iterable[str]) -> str:
    """A digest of all inputs of a verdict.

    Args:
        places: files, and folders with all that is in them, but for what is made from it. Their names count, too.
        facts: what else matters.

    Raises:
        FileNotFoundError: there is no such place.
    """
    digest = hashlib.sha256()
    parts = (
        part for place in places for file in _files(place) for part in (file.as_posix().encode(), file.read_bytes())
    )
    for part in (*parts, *(fact.encode() for fact in facts)):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def environment(tools: Iterable[str]) -> Iterator[str]:
    """What a verdict owes to this machine: Python, the packages that are installed, and which of these tools there are."""
    yield sys.version
    yield from sorted({f"{one.name}=={one.version}" for one in distributions()})
    yield from (f"{tool}: {shutil.which(tool)}" for tool in tools)


def main(arguments: Sequence[str], environ: Mapping[str, str], stamps: Stamps) -> int:
    """Run the command line; returns the exit code of the command, or 0 where there is nothing to run.

    Args:
        arguments: as the head of this module has them.
        environ: with `CI` nothing is skipped.
        stamps: verdicts that hold; one is added for each folder that passes.
    """
    options, command = _parse(arguments)
    facts = (*command, *environment(options.tool))

    def digests() -> dict[Path, str]:
        inputs = {folder: [folder] for folder in options.folders} | inputs_by_file(options.tests)
        return {place: digest_of((*files, *options.also), facts) for place, files in inputs.items()}

    before = digests()
    stale = [place for place in before if environ.get("CI") or not stamps.holds(before[place])]
    if skipped := [str(place) for place in before if place not in stale]:
        print(
            f"Unchanged since they passed here: {', '.join(skipped)}. `rm -r {STAMPS}` makes them run again.",
            flush=True,
        )
    if not stale:
        return 0
    code = subprocess.run([*command, *map(str, stale)], check=False).returncode
    if code == 0:
        after = digests()
        for place in stale:
            if after.get(place) == before[place]:  # Nobody edited it meanwhile.
                stamps.keep(before[place])
    return code


def inputs_by_file(suites: Sequence[Sequence[Path]]) -> dict[Path, list[Path]]:
    """What the verdict of each test file depends on.

    Args:
        suites: the folder of the tests, and what else they read.
    """
    texts = python_files() if suites else {}
    imports = Imports(texts)
    return {
        Path(path): [*_inputs(folder, sorted(imports.reached(path))), *read]
        for folder, *read in suites
        for path in texts
        if path.startswith(f"{folder.as_posix()}/") and Path(path).name.startswith("test_")
    }


def _inputs(folder: Path, reached: Sequence[str]) -> list[Path]:
    """Python files, and other files that they may read: those in the folder of the tests, and those beside them."""
    found = {Path(path).parent for path in reached} - {Path()}
    data = {one for place in found for one in place.iterdir() if one.is_file()} | set(_files(folder))
    return [*map(Path, reached), *sorted(one for one in data if one.suffix != ".py" and not one.name.startswith("."))]


def _parse(arguments: Sequence[str]) -> tuple[argparse.Namespace, Sequence[str]]:
    parser = argparse.ArgumentParser("python -m devtools.stamps", usage="%(prog)s [OPTIONS] FOLDER... -- COMMAND...")
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER", help="each is appended to the command")
    parser.add_argument(
        "--tests",
        action="append",
        type=lambda text: [Path(one) for one in text.split(":")],
        default=[],
        metavar="FOLDER[:PATH…]",
        help="each of its test files is",
    )
    parser.add_argument(
        "--also", action="append", type=Path, default=[], metavar="PATH", help="every verdict depends on it"
    )
    parser.add_argument("--tool", action="append", default=[], metavar="NAME", help="a program whose presence matters")
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options, command = parser.parse_args(arguments[:end]), arguments[end + 1 :]
    if not command:
        parser.error("the command is missing: it follows `--`")
    return options, command


def _files(place: Path) -> Iterator[Path]:
    if not place.is_dir():
        yield place
        return
    for one in sorted(place.iterdir()):
        if one.name not in _MADE and not one.name.startswith("."):
            yield from _files(one)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ, Stamps(STAMPS)))
