"""The pages as files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from devtools.modelcheck.specification.contents import CHAPTERS
from devtools.modelcheck.specification.index import index
from devtools.modelcheck.specification.pages import page

FOLDER: Final = Path(__file__).resolve().parents[3] / "docs" / "protocols"


@cache
def pages() -> Mapping[str, str]:
    """Every page by its name, as the code is now."""
    return {"README.md": index(), **{chapter.name: page(chapter) for chapter in CHAPTERS}}


def write() -> None:
    """Write every page."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


def stale() -> list[str]:
    """Names of the pages that are not what the code says."""
    return [name for name, text in pages().items() if _read(FOLDER / name) != text]


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""
