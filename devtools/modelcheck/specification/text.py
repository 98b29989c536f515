"""Small things of Markdown and English."""

from __future__ import annotations

import re
from collections.abc import Iterable
from textwrap import fill


def listed(parts: Iterable[str], last: str = "and") -> str:
    """`a, b and c`."""
    *most, end = parts
    return f"{', '.join(most)} {last} {end}" if most else end


def paragraph(text: str) -> list[str]:
    """The lines of a paragraph."""
    return fill(" ".join(text.split()), 128, break_long_words=False, break_on_hyphens=False).splitlines()


def link(label: str) -> str:
    """A step's number, linked to its heading as GitHub names it."""
    anchor = re.sub(r"[^a-z0-9_ -]", "", label.lower()).replace(" ", "-")
    return f"[{label.partition('.')[0]}](#{anchor})"
