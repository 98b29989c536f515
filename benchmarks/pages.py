"""Tables of docs/performance.md, written between its marks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

BEGIN = "<!-- written by `python -m benchmarks.growth`: do not edit -->"
END = "<!-- end of what is written -->"
_PLACE = re.compile(rf"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)


def require_place(page: Path) -> None:
    """Raise `ValueError` if the page has no place for a table."""
    if not _PLACE.search(page.read_text(encoding="utf-8")):
        raise ValueError(f"{page} has no place for the table: a line {BEGIN!r} and a line {END!r}.")


def write_growth(page: Path, result: Mapping[str, Any]) -> None:
    """Put the table of a result in place of the one that is there. Raises as `require_place` does."""
    require_place(page)
    table = f"{BEGIN}\n{_growth(result)}\n{END}"
    page.write_text(_PLACE.sub(lambda _: table, page.read_text(encoding="utf-8")), encoding="utf-8")


def _growth(result: Mapping[str, Any]) -> str:
    rows = [
        "| strategy | messages before | a new message | a duplicate of the newest | a duplicate of the oldest |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name, measured in result["strategies"].items():
        for messages, cost in measured["after"].items():
            cells = [f"`{name}`" if name else "", f"{int(messages):,}", *(_told(one) for one in cost.values())]
            rows.append(f"| {' | '.join(cells)} |")
            name = ""  # noqa: PLW2901  # Once is enough.
    machine = result["machine"]
    told = f"{machine['cores']} cores ({machine['cpu']}), Python {machine['python']}, {machine['date']}"
    return "\n".join(["", *rows, "", f"Measured on {told}; all figures are in `benchmarks/results/growth.json`.", ""])


def _told(cost: Mapping[str, float]) -> str:
    requests = f"{cost['requests']:.2f}".rstrip("0").rstrip(".")
    return f"{requests} {'request' if requests == '1' else 'requests'}, {cost['request units']:,.1f} RU"
