"""What publishing an app sends: the files of its folder, without those that its `.funcignore` names.

`azd` reads the file by the rules of `.gitignore`. `func azure functionapp publish` has rules of its own, which are played here
as `GitIgnoreParser.cs` and `FileSystemHelpers.GetLocalFiles` of Azure/azure-functions-core-tools have them (4589f9fb266f).
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pathspec import GitIgnoreSpec

Ignored = Callable[[str], bool]
"""Whether a path is left out, relative to the folder; that of a folder ends with a slash."""

_FUNC_NEVER_ENTERS: Final = {".git", ".vscode"}
_FUNC_NEVER_SENDS: Final = {".funcignore", ".gitignore", "local.settings.json", "project.lock.json"}
_ESCAPED: Final = re.compile(r"[-\[\]/{}()+?.\\^$|]")


def ignored_by_azd(rules: str) -> Ignored:
    """The rules of `.gitignore`."""
    return GitIgnoreSpec.from_lines(rules.splitlines()).match_file


def ignored_by_func(rules: str) -> Ignored:
    """The rules of core tools: each line is the beginning of a path, up to the end of a word; `!` lines win in any place."""
    lines = [line.strip() for line in rules.split("\n")]
    lines = [line for line in lines if line and not line.startswith("#")]
    left_out = _beginnings([line for line in lines if not line.startswith("!")])
    sent = _beginnings([line[1:] for line in lines if line.startswith("!")])

    def ignored(path: str) -> bool:
        *folders, name = path.split("/")
        if _FUNC_NEVER_ENTERS & set(folders) or name in _FUNC_NEVER_SENDS:
            return True
        # It asks about files only, and enters every other folder.
        return bool(name) and not sent.match(path) and left_out.match(path) is not None

    return ignored


def _beginnings(lines: list[str]) -> re.Pattern[str]:
    patterns = [
        _ESCAPED.sub(r"\\\g<0>", line.removeprefix("/")).replace("**", "(.+)").replace("*", r"([^\/]+)")
        for line in lines
    ]
    return re.compile(rf"^(({')|('.join(patterns)}))\b" if patterns else "(?!)", re.ASCII)


def published_files(folder: Path, by: Callable[[str], Ignored] = ignored_by_azd) -> list[Path]:
    """The files that are sent, relative to their folder and sorted.

    Args:
        folder: the app's, with `host.json` and a `.funcignore`.
        by: whose rules hold.

    Raises:
        FileNotFoundError: it has no `.funcignore`.
    """
    ignored = by((folder / ".funcignore").read_text(encoding="utf-8"))
    found: list[Path] = []
    for place, folders, files in os.walk(folder):
        here = Path(place).relative_to(folder)
        # What lies in an ignored folder is not looked at: no later rule brings it back.
        folders[:] = [name for name in folders if not ignored(f"{(here / name).as_posix()}/")]
        found += [here / name for name in files if not ignored((here / name).as_posix())]
    return sorted(found)


def build_archive(folder: Path, archive: Path) -> None:
    """Write the zip file that is sent.

    Args:
        folder: the app's.
        archive: where to write it; outside of the folder.
    """
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in published_files(folder):
            packed.write(folder / name, name)
