"""HTML, escaped unless it was made here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Html:
    """Text that is HTML already; any other text is escaped where it is put into an element."""

    text: str


Content: TypeAlias = Html | str


def trusted(text: str) -> Html:
    """HTML from the emulator's own source."""
    return Html(text)


def join(*parts: Content) -> Html:
    """One after the other."""
    return Html("".join(map(_text, parts)))


def element(tag: str, content: Content = "", **attributes: str) -> Html:
    """An element; `class_` stands for the attribute `class`."""
    written = "".join(f' {name.rstrip("_")}="{escape(value)}"' for name, value in attributes.items())
    return Html(f"<{tag}{written}>{_text(content)}</{tag}>")


def table(heads: Sequence[str], rows: Iterable[Sequence[Content]], *, kind: str = "") -> Html:
    """A table; it scrolls by itself where the window is narrow."""
    head = element("tr", join(*(element("th", name) for name in heads)))
    body = join(*(element("tr", join(*(element("td", cell) for cell in row))) for row in rows))
    inside = join(element("thead", head) if heads else "", element("tbody", body))
    return element("div", element("table", inside, class_=kind), class_="wide")


def section(title: str, content: Content) -> Html:
    """A part of the page with its title."""
    return element("section", join(element("h2", title), content))


def hint(text: Content) -> Html:
    """What to say where there is nothing to show."""
    return element("p", text, class_="hint")


def _text(content: Content) -> str:
    return content.text if isinstance(content, Html) else escape(content)
