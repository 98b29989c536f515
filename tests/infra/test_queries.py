"""Queries of the workbook and of alarms, and those that the pages show, are Kusto over the tables of Application Insights.

Microsoft's parser for its own editors reads them, and binds their names and types. What they give on an account is not known.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.infra.bicep import INFRA

ROOT: Final = INFRA.parent
_COMMON: Final = {
    "timestamp": "datetime",
    "customDimensions": "dynamic",
    "itemCount": "int",
    **dict.fromkeys(
        ("operation_Id", "operation_ParentId", "cloud_RoleName", "cloud_RoleInstance", "itemType"), "string"
    ),
}
TABLES: Final = {
    "customMetrics": {
        **_COMMON,
        "name": "string",
        **dict.fromkeys(("value", "valueSum", "valueMin", "valueMax", "valueStdDev"), "real"),
        "valueCount": "int",
    },
    "traces": {**_COMMON, "message": "string", "severityLevel": "int", "customMeasurements": "dynamic"},
}
"""The columns that are of use, by the names they have where a resource of Application Insights is asked.

Source: Microsoft's page "Workspace-based Application Insights resources", its tables of old and new names.
"""


def complaints(*queries: str) -> list[list[str]]:
    """What the parser has against each query."""
    node = shutil.which("node")
    assert node is not None, "Node.js is needed: 20 or newer."
    command = [node, str(Path(__file__).with_name("kusto.cjs"))]
    given = json.dumps({"tables": TABLES, "queries": queries})
    ran = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found: list[list[str]] = json.loads(ran.stdout)
    return found


def workbook_queries(path: Path) -> list[str]:
    """With a value for each parameter that the portal puts in."""
    items = json.loads(path.read_text())["items"]
    queries = [item["content"]["query"] for item in items if "query" in item["content"]]
    return [query.replace("{TimeRange:grain}", "5m") for query in queries]


def page_queries(path: Path) -> list[str]:
    return re.findall(r"^ *```kusto\n(.*?)^ *```", path.read_text(), re.MULTILINE | re.DOTALL)


def all_queries() -> dict[str, Sequence[str]]:
    """By the file that they stand in."""
    books = {path.name: workbook_queries(path) for path in (INFRA / "dashboard").glob("*.json")}
    pages = {path.name: found for path in (ROOT / "docs").rglob("*.md") if (found := page_queries(path))}
    alarms = {path.name: [path.read_text()] for path in (INFRA / "alarms").glob("*.kusto")}
    return {**books, **alarms, **pages}


def test_every_query_is_understood_with_all_its_names() -> None:
    written = [(name, query) for name, queries in all_queries().items() for query in queries]
    assert {"workbook.json", "parked.kusto"} <= {name for name, _ in written}
    found = complaints(*(query for _, query in written))
    assert [(name, said) for (name, _), said in zip(written, found, strict=True) if said] == []


WRONG: Final = {
    "customMetrix | count": "customMetrix",
    "customMetrics | where nme == 'a'": "nme",
    "customMetrics | where (name == 'a'": "Expected",
    "customMetrics | summarize sum(name)": "summable",
    "customMetrics | wherever name == 'a'": "Query operator",
    "customMetrics | where name == {TimeRange:grain}": "",
}


def test_a_query_that_is_wrong_is_noticed() -> None:
    for (query, complaint), said in zip(WRONG.items(), complaints(*WRONG), strict=True):
        assert said, query
        assert complaint in " ".join(said)
