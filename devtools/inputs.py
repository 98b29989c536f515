"""What test files depend on, and a digest of it that is the same on every machine.

A test file depends on the Python files that it imports, directly or not (`devtools.affected` follows imports), on data files
next to these, and on what `devtools.suites` says that it reads. Of all these the digest has the names and contents, and of the
programs that the test file uses the versions.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from devtools.affected import Imports, python_files, repository_files
from devtools.suites import Suite

BOOK: Final = "verdicts.json"
"""What no test depends on, since it says what became of them."""
A_PROCESS: Final = "a process"
"""Among what a test reads: nobody sees what a process reads in its turn."""
_VERSIONS: Final = {"node": ("--version", r"\d+"), "java": ("--version", r"\d+"), "go": ("version", r"\d+\.\d+")}
"""How a program is asked for its version, and the part of it that matters."""


class Inputs:
    """What test files depend on.

    Args:
        suites: what is said of tests, by folder or file.
        settings: on which all tests depend.
    """

    def __init__(self, suites: Mapping[str, Suite], settings: str = "") -> None:
        self._suites, self._settings = sorted(suites.items()), settings
        texts = python_files()
        self._imports = Imports(texts)
        self.tests = [path for path in texts if path.rpartition("/")[2].startswith("test_")]
        self.look_again()

    def look_again(self) -> None:
        """Look which files there are now. Of those that begin with a dot, which tests make, the ones count that are named."""
        named = {place for _, suite in self._suites for place in suite.reads}
        files = (path for path in repository_files() if path != BOOK)
        self._files = [path for path in files if path in named or not path.rpartition("/")[2].startswith(".")]

    def is_slow(self, test: str) -> bool:
        """Whether a test file has a verdict."""
        return next((suite.slow for _, suite in reversed(self._suites_of(test)) if suite.slow is not None), False)

    def tools(self, test: str) -> str:
        """The tools of a test file, with their versions here."""
        names = {tool for _, suite in self._suites_of(test) for tool in suite.tools}
        return ", ".join(f"{tool} {version(tool)}" for tool in ("python", *sorted(names)))

    def of(self, test: str) -> set[str]:
        """The files that a test file depends on."""
        reached = self._imports.reached(test)
        folders = {path.rpartition("/")[0] for path in reached} - {""}
        places = tuple(place and f"{place}/" for _, suite in self._suites_of(test) for place in suite.reads)
        near = (path for path in self._files if path.rpartition("/")[0] in folders and not path.endswith(".py"))
        return {*reached, *near, *(path for path in self._files if f"{path}/".startswith(places))}

    def undeclared(self, test: str, reads: Iterable[str]) -> set[str]:
        """What a test file reads, and is not said to depend on. A process is declared where anything is that it may read."""
        declared = any(suite.reads for place, suite in self._suites_of(test) if place)
        return ({*reads} & {*self._files, A_PROCESS}) - self.of(test) - ({A_PROCESS} if declared else set())

    def digest(self, test: str, tools: str) -> str:
        """A digest of all that a test file depends on now."""
        digest = sha256(f"{tools}\n{self._settings}\n".encode())
        for path in sorted(self.of(test)):
            status = Path(path).stat()
            digest.update(f"{path} {_content(path, status.st_mtime_ns, status.st_size)}\n".encode())
        return digest.hexdigest()[:16]

    def _suites_of(self, test: str) -> list[tuple[str, Suite]]:
        """What is said of a test file, by place; of the folders above it first."""
        return [(place, suite) for place, suite in self._suites if f"{test}/".startswith(place and f"{place}/")]


@cache
def version(tool: str) -> str:
    """The version of a tool, as far as it matters; "none" where the tool is absent."""
    if tool == "python":
        return f"{sys.version_info.major}.{sys.version_info.minor}"
    asked, pattern = _VERSIONS[tool]
    with suppress(OSError):
        said = re.search(pattern, subprocess.run([tool, asked], capture_output=True, text=True, check=False).stdout)
        return said[0] if said else "none"
    return "none"


@cache
def _content(path: str, _changed: int, _size: int) -> str:
    return sha256(Path(path).read_bytes()).hexdigest()
