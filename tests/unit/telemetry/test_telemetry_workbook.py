"""The workbook and the how-to cover all metrics and labels, and no others."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import pytest

from exactlyonce.telemetry import metrics
from tests.packaging.sources import LIBRARY, ROOT

WORKBOOK: Final[dict[str, Any]] = json.loads((ROOT / "infra/dashboard/workbook.json").read_text())
HOW_TO: Final = (ROOT / "docs/howto/telemetry.md").read_text()
METRICS: Final = {value for name, value in vars(metrics).items() if name.isupper() and isinstance(value, str)}
SOURCES: Final = "".join(path.read_text() for path in sorted((LIBRARY / "telemetry").glob("*.py")))
PARTS: Final = {1: "text", 3: "query", 9: "parameters"}


def queries() -> Iterator[dict[str, Any]]:
    yield from (item["content"] for item in WORKBOOK["items"] if item["type"] == 3)


def names(query: str) -> set[str]:
    """Metrics that a query asks for."""
    asked = re.findall(r"name (?:== |in \()([^)\n]+)", query)
    return {name for item in asked for name in re.findall(r"'([^']+)'", item)}


def labels(query: str) -> set[str]:
    return set(re.findall(r"customDimensions\['([^']+)'\]", query))


def test_the_workbook_has_the_form_of_one() -> None:
    assert WORKBOOK["version"] == "Notebook/1.0"
    assert {item["type"] for item in WORKBOOK["items"]} == set(PARTS)
    every = [item["name"] for item in WORKBOOK["items"]]
    assert len(set(every)) == len(every)
    for content in queries():
        assert (content["version"], content["queryType"]) == ("KqlItem/1.0", 0)
        assert content["resourceType"] == "microsoft.insights/components"
        assert content["timeContextFromParameter"] == "TimeRange"
        assert content["query"].startswith("customMetrics\n| where name ")
        assert content["query"].count("(") == content["query"].count(")")


def test_the_workbook_shows_every_metric_and_no_other() -> None:
    assert {name for content in queries() for name in names(content["query"])} == METRICS


@pytest.mark.parametrize("label", sorted({item for content in queries() for item in labels(content["query"])}))
def test_the_workbook_asks_for_existing_labels(label: str) -> None:
    assert f'"{label}"' in SOURCES


def test_the_how_to_explains_every_metric_and_no_other() -> None:
    rows = re.findall(r"^\| `([a-z_.]+)` \|", HOW_TO, re.MULTILINE)
    assert sorted(rows) == sorted(METRICS)


def test_a_metric_that_there_is_not_would_be_noticed() -> None:
    assert names("customMetrics\n| where name in ('a.b', 'c')\n| where name == 'd'") == {"a.b", "c", "d"}
    assert labels("tostring(customDimensions['a.b'])") == {"a.b"}
