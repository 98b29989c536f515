"""Telemetry, its workbook and its alarms: on by one parameter, over metrics that the library reports."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from exactlyonce.telemetry import metrics
from tests.infra.bicep import INFRA, ROOT, resources
from tests.infra.conftest import settings_of

FILES: Final = {path.stem: path.read_text() for path in sorted((INFRA / "alarms").glob("*.kusto"))}
METRICS: Final = {value for name, value in vars(metrics).items() if name.isupper() and isinstance(value, str)}
SOURCES: Final = "".join(path.read_text() for path in sorted((ROOT / "exactlyonce" / "telemetry").glob("*.py")))
SWITCHES: Final = {
    "PYTHON_APPLICATIONINSIGHTS_ENABLE_TELEMETRY": "true",
    "AzureFunctionsJobHost__telemetryMode": "OpenTelemetry",
}


def made(kind: str, **parameters: Any) -> list[dict[str, Any]]:
    """Bodies of resources of Microsoft.Insights."""
    return [body for name, body in resources(**parameters) if name.startswith(f"Microsoft.Insights/{kind}@")]


def test_telemetry_is_off_unless_asked_for() -> None:
    assert not set(SWITCHES) & set(settings_of())
    assert not [name for name, _ in resources() if name.startswith("Microsoft.Insights/")]


def test_one_parameter_turns_on_telemetry_its_workbook_and_its_alarms() -> None:
    given = settings_of(telemetry=True)
    assert {name: given[name] for name in set(given) - set(settings_of())} == SWITCHES
    assert made("scheduledQueryRules", telemetry=True)
    (workbook,) = made("workbooks", telemetry=True)
    assert json.loads(workbook["properties"]["serializedData"])["version"] == "Notebook/1.0"


def test_every_alarm_is_deployed_and_every_query_is_that_of_a_file() -> None:
    rules = [rule["properties"] for rule in made("scheduledQueryRules", telemetry=True)]
    assert {rule["displayName"]: rule["criteria"]["allOf"][0]["query"] for rule in rules} == {
        f"exactlyonce: {name}": query for name, query in FILES.items()
    }
    for rule in rules:
        (criterion,) = rule["criteria"]["allOf"]
        assert (criterion["timeAggregation"], criterion["operator"], criterion["threshold"]) == (
            "Count",
            "GreaterThan",
            0,
        )
        assert (rule["scopes"], rule["windowSize"]) == (["monitoring.outputs.insightsId"], "PT15M")


def test_alarms_are_mailed_where_there_is_an_address() -> None:
    assert made("actionGroups", telemetry=True)[0]["properties"]["emailReceivers"] == []
    (group,) = made("actionGroups", telemetry=True, alarmEmail="on-call@example.org")
    assert [item["emailAddress"] for item in group["properties"]["emailReceivers"]] == ["on-call@example.org"]
    assert len(group["properties"]["groupShortName"]) <= 12


def test_alarms_read_metrics_of_the_library_and_nothing_that_is_sampled() -> None:
    for name, query in FILES.items():
        assert query.startswith("customMetrics\n"), name
        assert set(re.findall(r"'((?:exactlyonce|azure)\.[a-z_.]+[a-z])'", query)) - METRICS <= labels(query), name
        assert [label for label in labels(query) if f'"{label}"' not in SOURCES] == [], name


def labels(query: str) -> set[str]:
    return set(re.findall(r"customDimensions\['([^']+)'\]", query))


def test_the_page_for_operators_explains_every_alarm_and_no_other() -> None:
    _, _, rest = (ROOT / "docs" / "howto" / "on-call.md").read_text().partition("\n## Alarms\n")
    assert sorted(re.findall(r"^\| `([a-z]+)` \|", rest.partition("\n## ")[0], re.MULTILINE)) == sorted(FILES)
