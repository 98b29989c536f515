"""host.json is read with the real host's defaults and limits."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from function_host import HostJson, QueueOptions, SettingsError, load_host_json
from function_host.host_json import parse_time_span


def queues(**options: Any) -> QueueOptions:
    return HostJson.model_validate({"version": "2.0", "extensions": {"queues": options}}).extensions.queues


def test_defaults_are_those_of_the_real_host() -> None:
    options = HostJson().extensions.queues

    assert options.max_polling_interval == timedelta(minutes=1)
    assert options.visibility_timeout == timedelta(0)
    assert (options.batch_size, options.max_dequeue_count, options.message_encoding) == (16, 5, "base64")
    assert options.batch_size + options.threshold() == 24
    assert HostJson().extensions.http.route_prefix == "api"


def test_defaults_of_service_bus_are_those_of_the_real_host() -> None:
    options = HostJson().extensions.service_bus

    assert (options.calls(), options.calls(processors=2), options.max_concurrent_sessions) == (16, 32, 8)
    assert (options.auto_complete_messages, options.prefetch_count, options.max_message_batch_size) == (True, 0, 1000)
    assert options.max_auto_lock_renewal_duration == timedelta(minutes=5)
    assert options.session_idle_timeout == timedelta(minutes=1)


@pytest.mark.parametrize(
    "options",
    [
        {"maxConcurrentCalls": 0},
        {"maxConcurrentSessions": 0},
        {"maxMessageBatchSize": 0},
        {"minMessageBatchSize": 2},
        {"prefetchCount": -1},
        {"sessionIdleTimeout": "00:00:00"},
        {"maxAutoLockRenewalDuration": "5 minutes"},
    ],
)
def test_values_that_service_bus_cannot_have_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        HostJson.model_validate({"extensions": {"serviceBus": options}})


def test_new_batch_threshold_grows_with_batch_size_and_processors_unless_it_is_set() -> None:
    assert queues(batchSize=7).threshold() == 3
    assert queues(batchSize=7).threshold(processors=4) == 12
    assert queues(batchSize=7, newBatchThreshold=0).threshold(processors=4) == 0


@pytest.mark.parametrize(
    "options",
    [
        {"batchSize": 0},
        {"batchSize": 33},
        {"maxDequeueCount": 0},
        {"newBatchThreshold": -1},
        {"maxPollingInterval": "00:00:00.0990000"},
        {"visibilityTimeout": "7.00:00:01"},
        {"visibilityTimeout": 30},
        {"messageEncoding": "hex"},
    ],
)
def test_values_beyond_the_limits_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        queues(**options)


def test_an_encoding_may_be_written_in_any_case() -> None:
    assert queues(messageEncoding="None").message_encoding == "none"


@pytest.mark.parametrize(
    ("text", "seconds"), [("00:00:30", 30.0), ("00:00:00.1000000", 0.1), ("01:02:03", 3723.0), ("1.00:00:00", 86400.0)]
)
def test_time_spans_are_read_as_dot_net_writes_them(text: str, seconds: float) -> None:
    assert parse_time_span(text).total_seconds() == seconds


def test_settings_of_parts_that_are_not_here_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "host.json"
    path.write_text('{"version": "2.0", "extensionBundle": {"id": "x"}, "extensions": {"serviceBus": {"a": 1}}}')

    assert load_host_json(path) == HostJson()


def test_a_problem_is_named_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "host.json"
    path.write_text('{"version": "2.0", "extensions": {"queues": {"batchSize": 99}}}')

    with pytest.raises(SettingsError, match=r"extensions\.queues\.batchSize: .*32"):
        load_host_json(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"host\.json is missing"):
        load_host_json(tmp_path / "host.json")
