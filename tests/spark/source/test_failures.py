"""A failure of Spark ends the job with the sentence of the error behind it. Each refusal: `test_connector_in_trouble`."""

from __future__ import annotations

import json

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from exactlyonce.errors import ConfigurationError
from spark_jobs.job.exits import AccountError
from spark_jobs.source.tasks import refused_to_the_connector, translated


def refusal_of(status: int) -> str:
    """The text of a `CosmosException`, in the order of its source, within a trace of Spark."""
    fields = {
        "ClassName": "ForbiddenException",
        "userAgent": "azsdk-java-cosmos/4.81.0 Linux/6 JRE/17 exactlyonce",
        "statusCode": status,
        "resourceAddress": None,
        "error": '{"code":"Forbidden"}',
        "innerErrorMessage": "refused",
        "responseHeaders": "{x-ms-request-charge=1.00, x-ms-substatus=5300}",
        "cosmosDiagnostics": {"retryContext": {"statusAndSubStatusCodes": [{"statusCode": 429}]}},
    }
    text = json.dumps(fields, separators=(",", ":"))
    return f"Job aborted due to stage failure: Task 0 failed 4 times, most recent failure: {text}\n\tat reactor.core"


def test_spark_keeps_the_text_by_which_a_refusal_is_known(spark: SparkSession) -> None:
    failing = spark.range(1).select(f.raise_error(f.lit(refusal_of(404))))
    with pytest.raises(ConfigurationError, match="404/5300") as caught, translated():
        failing.collect()
    assert caught.value.__cause__ is None
    assert "userAgent" not in str(caught.value)


def test_an_error_that_a_task_raised_comes_first() -> None:
    trace = f"{refusal_of(404)}\nspark_jobs.job.exits.AccountError: The account answered 429/0.\n"
    with pytest.raises(AccountError, match="429/0"), translated():
        raise Py4JError(trace)


@pytest.mark.parametrize(
    "text", ["java.lang.NullPointerException", '{"statusCode":403}', '"statusCode":404 of a retry']
)
def test_other_failures_stay_as_they_are(text: str) -> None:
    assert refused_to_the_connector(Py4JError(text)) is None
    with pytest.raises(Py4JError), translated():
        raise Py4JError(text)
