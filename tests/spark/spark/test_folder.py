"""Folders are replaced as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from exactlyonce.errors import ConfigurationError
from spark_jobs.auditor.results import destination
from spark_jobs.spark.folder import Folder


def test_a_file_is_there_as_a_whole_and_says_what_was_written(spark: SparkSession, tmp_path: Path) -> None:
    folder = Folder(spark, str(tmp_path / "a"))
    assert folder.names() == []
    folder.write("text", "\u00fcml\u00e4ut\n")
    folder.write("text", "again \ud800")
    assert folder.read("text") == "again \\ud800"
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["text"]


def test_a_folder_takes_the_place_of_another(spark: SparkSession, tmp_path: Path) -> None:
    old = Folder(spark, str(tmp_path / "a"))
    old.write("old", "")
    with old.replaced() as new:
        new.write("new", "")
    assert old.names() == ["new"]
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_folder_that_is_not_finished_replaces_nothing(spark: SparkSession, tmp_path: Path) -> None:
    old = Folder(spark, str(tmp_path / "a"))
    old.write("old", "")

    def fail() -> None:
        with old.replaced() as new:
            new.write("new", "")
            raise ValueError("full disk")

    with pytest.raises(ValueError, match="full disk"):
        fail()
    assert old.names() == ["old"]
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_results_go_where_nothing_is_or_results_are(spark: SparkSession, tmp_path: Path) -> None:
    assert destination(spark, str(tmp_path / "new")).names() == []
    (tmp_path / "new" / "summary.json").write_text("{}")
    assert destination(spark, str(tmp_path / "new")).names() == ["summary.json"]
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="file"):
        destination(spark, str(tmp_path / "file" / "below"))
    with pytest.raises(ConfigurationError, match="nowhere"):
        destination(spark, "nowhere://x/y")
