"""Cuts the lock of one environment out of `locks/all.txt`, which has every version once.

    python -m devtools.locks docs > docs.txt

A part has what its extras and groups of `pyproject.toml` ask for, and what these need, as the `# via` comments of the lock say.
The script runs before anything is installed, so it imports the standard library only.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import tomllib

PARTS: Final = {
    "amqp": ("amqp",),
    "app": ("library", "azure"),
    "dev": ("library", "azure", "spark", "stand-ins", "dev"),
    "docs": ("library", "azure", "telemetry", "docs"),
    "engine": ("library", "azure", "engine"),
    "peers": ("library", "azure", "stand-ins", "peers", "devtools"),
    "test": ("library", "azure", "stand-ins", "test", "devtools"),
}
"""Environments, each with its extras and groups. The library and the stand-ins are projects, whose dependencies are meant."""
_ROOT: Final = Path(__file__).parents[1]


def wanted(part: str) -> list[str]:
    """The requirements that a part is cut for."""
    return [requirement for group in PARTS[part] for requirement in _asked(group)]


def cut(lock: str, requirements: Iterable[str]) -> str:
    """The entries of a lock that these requirements lead to, each with its hashes."""
    entries = [(_name(entry), entry) for entry in re.split(r"\n(?=\S)", lock.strip())]
    names, new = set[str](), {_name(requirement) for requirement in requirements}
    while new:
        names |= new
        new = {name for name, entry in entries if names & _askers(entry)} - names
    return "".join(f"{entry}\n" for name, entry in entries if name in names)


def _asked(group: str) -> Iterator[str]:
    library, *stand_ins = map(_project, ("", "packages/function-host", "packages/local-cosmos"))
    groups = {**library["project"]["optional-dependencies"], **library["dependency-groups"]}
    groups["library"] = library["project"]["dependencies"]
    groups["stand-ins"] = [requirement for project in stand_ins for requirement in project["project"]["dependencies"]]
    for requirement in groups[group]:
        yield from [requirement] if isinstance(requirement, str) else _asked(requirement["include-group"])


def _project(folder: str) -> dict[str, Any]:
    return tomllib.loads((_ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))


def _askers(entry: str) -> set[str]:
    return set(re.findall(r"(?:via|,) ([\w.-]+)(?=,|$)", entry, re.MULTILINE))


def _name(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement)[0]).lower()


if __name__ == "__main__":
    sys.stdout.write(cut((_ROOT / "locks" / "all.txt").read_text(encoding="utf-8"), wanted(sys.argv[1])))
