"""Charts over time find their ticks, whatever span they have to show."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from spark_jobs.report.charts import trend_chart

BEGIN = datetime(2026, 1, 1, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    "span", [timedelta(seconds=170), timedelta(minutes=170), timedelta(hours=70), timedelta(days=80)]
)
def test_a_span_of_nearly_three_of_the_next_larger_unit_has_ticks_and_no_warning(span: timedelta) -> None:
    chart = trend_chart(((BEGIN, "full", 0), (BEGIN + span, "full", 3)))
    assert chart is not None
    assert "<svg" in chart
