"""The figures of the cost model are those that were measured, and its calculation gives what stands below it."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stdout
from typing import Any, Final

import pytest

from benchmarks.contenders import ROUTES
from benchmarks.seeding import History
from benchmarks.subjects import TIMED, UNTIMED, Subject, subjects
from tests.packaging.sources import ROOT

PAGE: Final = (ROOT / "docs" / "cost-model.md").read_text()
MEASURED: Final = json.loads((ROOT / "benchmarks" / "results" / "growth.json").read_text())["strategies"]
(CODE,) = re.findall(r"```python\n# cost\.py\n(.*?)```", PAGE, re.DOTALL)


def rows() -> dict[str, list[str]]:
    """The table, by strategy."""
    found = re.findall(r"^\| `([A-Z]\w+\(\))`(, [^|]*\w)? *\|(.*)\|$", PAGE, re.MULTILINE)
    return {name + which: [cell.strip() for cell in rest.split("|")] for name, which, rest in found}


def measured(name: str) -> list[str]:
    """What its row has to say of request units."""
    histories = MEASURED[name]["after"]
    costs: dict[str, Any] = histories[max(histories, key=int)]
    new, newest, oldest = (
        f"{costs[kind]['request units']:.1f}"
        for kind in ("first", "duplicate of the newest", "duplicate of the oldest")
    )
    return [f"{new} RU", f"{newest} RU" if newest == oldest else f"{newest} to {oldest} RU"]


def bytes_kept(subject: Subject) -> float:
    """What one more message leaves in the store, for each."""
    history = History(subject, ROUTES)
    sizes = []
    for messages in (320, 640):
        history.grow(messages)
        assert history.document is not None
        kept = [*history.apart.values(), *history.companions.values(), history.document.value]
        sizes.append(len(json.dumps(kept, separators=(",", ":"))))
    return (sizes[1] - sizes[0]) / 320


def ran(code: str) -> tuple[dict[str, Any], str]:
    """Names and output of a calculation."""
    told, names = io.StringIO(), dict[str, Any]()
    with redirect_stdout(told):
        exec(compile(code, "cost.py", "exec"), names)  # noqa: S102  # It is the page's own.
    return names, told.getvalue()


@pytest.mark.parametrize("name", rows())
def test_request_units_of_a_message_are_those_that_were_measured(name: str) -> None:
    assert rows()[name][:2] == measured(name)


@pytest.mark.parametrize("subject", [item for item in subjects() if item.name in rows()], ids=lambda item: item.name)
def test_bytes_kept_of_a_message_are_those_that_strategies_write(subject: Subject) -> None:
    said = int(rows()[subject.name][2].split(",")[0])
    assert said == pytest.approx(bytes_kept(subject), abs=10)


def test_every_strategy_that_was_measured_without_events_is_in_the_table() -> None:
    assert set(rows()) == {name for name in MEASURED if not name.endswith("event-sourced")}


def test_the_calculation_gives_what_stands_below_it() -> None:
    (stands,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    assert ran(CODE)[1] == stands


def test_the_calculation_begins_with_figures_of_the_table() -> None:
    names, _ = ran(CODE)
    new, _, kept = rows()[TIMED]
    # The copies that are counted come to a process that does not know the entity.
    starts = [f"{names['STRATEGY_RU']} RU", f"{names['DUPLICATE_RU']} RU", str(names["BYTES_KEPT"])]
    assert starts == [new, rows()[UNTIMED][1].split(" to ")[-1], kept.split(",")[0]]
