"""How messages per second are measured and reported; `test_latency` has what latency alone makes of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from benchmarks import throughput
from benchmarks.contenders import contenders
from benchmarks.subjects import TIMED
from benchmarks.targets import CENTRE, FEW, Target, missed, throughput_targets
from benchmarks.throughput import (
    HEADLINERS,
    NOT_COMPARED,
    full_plan,
    measure,
    quick_plan,
)
from benchmarks.traffic import Load, Pace, messages

MACHINE = {"cores": 2, "cpu": "a CPU", "python": "3.11", "date": "2026-01-01"}


@pytest.mark.acceptance
async def test_what_is_measured_is_what_the_store_was_asked_for() -> None:
    hot = Load("hot", 64, 5)
    one = (await measure([(hot, (TIMED,))], 0.4, 1, games=20))[str(hot)][TIMED]
    assert one["request units"] > one["requests"] > 0
    assert one["CPU ms"] > 0
    assert one["conflicts"] == 0


def test_of_all_deliveries_a_tenth_are_copies_and_games_are_chosen_as_the_workload_says() -> None:
    contender = contenders()[0]
    for workload, most in (("uniform", 0.02), ("zipf", 0.25), ("hot", 1.0)):
        coming = messages(contender, workload, Random(1), {}, hot="hot-1", games=200)
        given = [next(coming) for _ in range(5_000)]
        games = [contender.entity.ref_of(item).id for item in given]
        busiest = max(set(games), key=games.count)
        assert 0.4 * most <= games.count(busiest) / len(games) <= most
        assert len(given) - len({item.id for item in given}) == pytest.approx(500, rel=0.2)


def test_how_long_messages_take_is_not_known_where_the_slow_ones_are_missing() -> None:
    assert (Pace(10.0, (), 5, 0.1).p50, Pace(10.0, (), 5, 0.1).p99) == (None, None)
    pace = Pace(10.0, tuple(number / 1000 for number in range(1, 101)), 100, 0.1)
    assert pace.p50 == pytest.approx(50.5)
    assert pace.p99 == pytest.approx(100, abs=1)


def speed(messages: float, p50: float = 40.0, units: float = 20.0, requests: float = 3.0) -> dict[str, Any]:
    return {
        "messages/s": messages,
        "slowest and fastest": [messages, messages],
        "p50 ms": p50,
        "p99 ms": None,
        "requests": requests,
        "request units": units,
        "conflicts": 0,
        "CPU ms": 1.5,
    }


def result(**changed: dict[str, Any]) -> dict[str, Any]:
    loads: dict[str, Any] = {str(load): {name: speed(100) for name in names} for load, names in full_plan()}
    slower = {"uniform": speed(50, units=61.0), "hot": speed(20)}
    for workload in ("uniform", "hot"):
        compared = loads[str(Load(workload, *CENTRE))]
        compared["seven steps"] = slower[workload]
        compared[TIMED] = changed.get(workload, speed(200, requests=0.06))
    loads[str(FEW)][TIMED] = changed.get("few", speed(100, p50=28.0))
    return {"machine": MACHINE, "seconds": 1, "repeats": 3, "loads": loads}


def test_each_missed_target_is_reported() -> None:
    assert list(missed(throughput_targets(result()))) == []
    for changed, sentence in (
        (
            {"hot": speed(199, requests=0.06)},
            "One hot entity: messages/s, times the seven steps': 9.95; at least 10 is wanted.",
        ),
        ({"uniform": speed(149)}, "Many entities: messages/s, times the seven steps': 2.98; at least 3 is wanted."),
        (
            {"uniform": speed(150, units=20.8)},
            "Many entities: request units, times the seven steps': 0.34; at most 0.333 is wanted.",
        ),
        ({"hot": speed(200, requests=0.07)}, "One hot entity: requests per message: 0.07; at most 0.06 is wanted."),
        (
            {"uniform": speed(150) | {"CPU ms": 1.9}},
            "Many entities: client's CPU, times the naive handler's: 1.27; at most 1.25 is wanted.",
        ),
        (
            {"few": speed(100, p50=28.4)},
            "p50 at 20 ms and 4 in flight, times the naive handler's: 0.71; at most 0.7 is wanted.",
        ),
    ):
        assert list(missed(throughput_targets(result(**changed)))) == [sentence]


def test_what_has_no_figure_is_reported_and_not_compared() -> None:
    unknown = speed(200) | {"p50 ms": None}
    with pytest.raises(ValueError, match="There is no figure for p50 ms: measure with more --seconds"):
        list(missed(throughput_targets(result(few=unknown))))


def test_what_has_no_limit_is_never_missed() -> None:
    assert Target("A figure", 1e9).wanted == "no limit"
    assert list(missed([Target("A figure", 1e9)])) == []


def test_all_that_can_be_compared_meet_at_one_load_and_the_quick_plan_has_all_that_targets_are_about() -> None:
    names = {contender.name for contender in contenders()} - set(NOT_COMPARED)
    full = dict(full_plan())
    assert len(full) == len(full_plan()) == 3 * 6 + 1
    assert {*full[Load("zipf", *CENTRE)]} == names
    assert {*HEADLINERS} < names
    for load, wanted in quick_plan():
        assert {*wanted} <= {*full[load]}
    assert {load for load, _ in quick_plan()} == {Load("uniform", *CENTRE), Load("hot", *CENTRE), FEW}


@pytest.mark.parametrize(("few", "sentence"), [(28.0, ""), (60.0, "p50 at 20 ms"), (None, "There is no figure")])
def test_the_command_ends_with_a_sentence_for_what_is_missed_or_not_known(
    few: float | None,
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def measured(*_: Any) -> Any:
        return result(few=speed(100) | {"p50 ms": few})["loads"]

    page, output = tmp_path / "performance.md", tmp_path / "results" / "throughput.json"
    page.write_text(
        "<!-- written by `python -m benchmarks.throughput`: do not edit -->\n<!-- end of what is written -->\n"
    )
    monkeypatch.setattr(throughput, "measure", measured)
    monkeypatch.setattr(sys, "argv", ["throughput", "--output", str(output), "--page", str(page)])
    assert throughput.main() == bool(sentence)
    sentences = capsys.readouterr().err.splitlines()
    assert len(sentences) == bool(sentence)
    assert all(item.startswith(sentence) for item in sentences)
    assert json.loads(output.read_text())["repeats"] == 3
    assert ("| messages/s |" in page.read_text()) == (few is not None)
