"""What queues and topics can be, and which files say so."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local_service_bus.broker.messages import Content
from local_service_bus.broker.rules import Rules, passes
from local_service_bus.config_file import read_topology
from local_service_bus.topology import (
    BadTopologyError,
    CorrelationFilter,
    Queue,
    Subscription,
    Topic,
    Topology,
)

SQL_FILTER: Any = "size = 1"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda: Queue(""), "Queue '': a name is not empty"),
        (lambda: Queue("a/b"), "Queue 'a/b': a name is not empty and has none of /"),
        (lambda: Queue("q", lock_duration=-1), "Queue 'q': lock_duration has to be greater than 0, not -1."),
        (lambda: Queue("q", time_to_live=0), "Queue 'q': time_to_live has to be greater than 0, not 0."),
        (lambda: Queue("q", max_delivery_count=0), "max_delivery_count has to be greater than 0"),
        (lambda: Queue("q", duplicate_window=-5), "Queue 'q': duplicate_window has to be greater than 0"),
        (lambda: Queue("q", max_bytes=0), "max_bytes has to be greater than 0"),
        (lambda: Queue("q", lock_duration=float("nan")), "lock_duration has to be greater than 0, not nan."),
        (lambda: Subscription("s", lock_duration=0), "Subscription 's': lock_duration"),
        (lambda: Subscription("s", filters=(SQL_FILTER,)), "Subscription 's': the endpoint knows correlation filters"),
        (lambda: Topic("t", time_to_live=-1), "Topic 't': time_to_live"),
        (lambda: Topic("t", (Subscription("s"), Subscription("S"))), "Topic 't': subscription 'S' is there twice"),
        (lambda: Topology((Queue("q"), Queue("Q"))), "Entity 'Q' is there twice; case does not count."),
        (lambda: Topology((Queue("q"),), (Topic("q"),)), "Entity 'q' is there twice"),
    ],
)
def test_a_topology_that_cannot_be_is_refused(wrong: Callable[[], object], told: str) -> None:
    with pytest.raises(BadTopologyError, match=re.escape(told)):
        wrong()


PROPERTIES = {
    "DeadLetteringOnMessageExpiration": True,
    "DefaultMessageTimeToLive": "PT1H",
    "ForwardDeadLetteredMessagesTo": "",
    "ForwardTo": "",
    "LockDuration": "PT30S",
    "MaxDeliveryCount": 3,
    "RequiresSession": True,
}
RED = {"FilterType": "Correlation", "CorrelationFilter": {"Label": "red", "Properties": {"size": 1}}}
SQL = {"FilterType": "Sql", "SqlFilter": {"SqlExpression": "size = 1"}}


def config(queue: dict[str, Any] | None = None, rule: dict[str, Any] | None = None, **namespace: Any) -> dict[str, Any]:
    """A file as Microsoft's emulator reads it."""
    subscription = {"Name": "s", "Properties": PROPERTIES, "Rules": [{"Name": "r", "Properties": rule or RED}]}
    duplicates = {"DuplicateDetectionHistoryTimeWindow": "PT20S", "RequiresDuplicateDetection": True}
    whole = {
        "Name": "local",
        "Queues": [{"Name": "q", "Properties": {**PROPERTIES, **duplicates, **(queue or {})}}],
        "Topics": [{"Name": "t", "Properties": duplicates, "Subscriptions": [subscription]}],
        **namespace,
    }
    return {"UserConfig": {"Namespaces": [whole], "Logging": {"Type": "File"}}}


def test_the_file_of_microsofts_emulator_is_read(tmp_path: Path) -> None:
    file = tmp_path / "Config.json"
    file.write_text(json.dumps(config()))
    held: dict[str, Any] = {
        "lock_duration": 30.0,
        "max_delivery_count": 3,
        "requires_session": True,
        "time_to_live": 3600.0,
        "dead_letter_on_expiry": True,
    }
    reds = (CorrelationFilter(subject="red", properties={"size": 1}),)
    assert read_topology(file) == Topology(
        (Queue("q", duplicate_window=20.0, **held),),
        (Topic("t", (Subscription("s", filters=reds, **held),), duplicate_window=20.0),),
    )


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (config(rule=SQL), "the endpoint has no SQL filters and no actions; use a correlation filter"),
        (config({"ForwardTo": "other"}), "UserConfig.Namespaces.0.Queues.0.Properties.ForwardTo: Input should be ''"),
        (config({"LockDuration": "soon"}), "Queues.0.Properties.LockDuration"),
        (config({"LockDuration": "-PT5S"}), "Queue 'q': lock_duration has to be greater than 0"),
        (config({"Colour": "red"}), "Queues.0.Properties.Colour: Extra inputs are not permitted"),
        (config(Queues=[{"Name": "q"}, {"Name": "Q"}]), "Entity 'Q' is there twice"),
        ({"UserConfig": {"Namespaces": []}}, "has 0 namespaces; the endpoint is exactly one."),
        ({}, "UserConfig: Field required"),
        ([], "file: Input should be an object"),
    ],
)
def test_a_file_that_is_not_right_is_refused_with_the_place(tmp_path: Path, content: object, told: str) -> None:
    file = tmp_path / "Config.json"
    file.write_text(json.dumps(content))
    with pytest.raises(BadTopologyError, match=re.escape(told)):
        read_topology(file)


def test_a_file_that_is_not_there_or_no_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadTopologyError, match="cannot be read: No such file"):
        read_topology(tmp_path / "none.json")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(BadTopologyError, match="Invalid JSON"):
        read_topology(tmp_path / "bad.json")


def test_a_filter_wants_everything_it_names() -> None:
    content = Content(payload=b"", subject="red", to="you", properties={"size": 1})
    for wanted in ({}, {"subject": "red"}, {"to": "you", "properties": {"size": 1}}):
        assert passes(CorrelationFilter(**wanted), content)
    for wanted in ({"subject": "Red"}, {"subject": "red", "properties": {"size": 2}}, {"correlation_id": "c"}):
        assert not passes(CorrelationFilter(**wanted), content)
    assert Rules("s", (CorrelationFilter(to="me"), CorrelationFilter(to="you"))).pass_on(content)
    assert Rules("s").pass_on(content)
