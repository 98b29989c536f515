"""What `func azure functionapp publish` sends: the files of a folder, without those that its `.funcignore` names."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

from pathspec import GitIgnoreSpec


def published_files(folder: Path) -> list[Path]:
    """The files that are sent, relative to their folder and sorted.

    Args:
        folder: the app's, with `host.json` and a `.funcignore`, whose rules are those of `.gitignore`.

    Raises:
        FileNotFoundError: it has no `.funcignore`.
    """
    ignored = GitIgnoreSpec.from_lines((folder / ".funcignore").read_text(encoding="utf-8").splitlines())
    found: list[Path] = []
    for place, folders, files in os.walk(folder):
        here = Path(place).relative_to(folder)
        # What lies in an ignored folder is not looked at: no later rule brings it back.
        folders[:] = [name for name in folders if not ignored.match_file(f"{(here / name).as_posix()}/")]
        found += [here / name for name in files if not ignored.match_file((here / name).as_posix())]
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
