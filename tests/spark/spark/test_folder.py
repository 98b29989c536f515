"""Folders are replaced as a whole, on the file systems of classic Spark and on that of a client of Spark Connect."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from exactlyonce.errors import ConfigurationError
from spark_jobs.auditor.auditor import destination
from spark_jobs.spark.folder import Files, Folder, HadoopFiles, PlainFiles


@pytest.fixture(params=[pytest.param("Hadoop", marks=pytest.mark.classic), "plain"])
def files(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Files:
    return HadoopFiles(spark, str(tmp_path)) if request.param == "Hadoop" else PlainFiles()


@pytest.fixture
def folder(spark: SparkSession, files: Files, tmp_path: Path) -> Folder:
    """A folder that is not there yet, alone in another one."""
    return Folder(spark, str(tmp_path / "a"), files)


def test_a_file_is_there_as_a_whole_and_says_what_was_written(folder: Folder, tmp_path: Path) -> None:
    assert folder.names() == []
    folder.write("text", "\u00fcml\u00e4ut\n")
    folder.write("text", "again \ud800")
    assert folder.read("text") == "again \\ud800"
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["text"]


def test_a_folder_takes_the_place_of_another(folder: Folder, tmp_path: Path) -> None:
    folder.write("old", "")
    with folder.replaced() as new:
        new.write("new", "")
    assert folder.names() == ["new"]
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_folder_that_is_not_finished_replaces_nothing(folder: Folder, tmp_path: Path) -> None:
    folder.write("old", "")

    def fail() -> None:
        with folder.replaced() as new:
            new.write("new", "")
            raise ValueError("full disk")

    with pytest.raises(ValueError, match="full disk"):
        fail()
    assert folder.names() == ["old"]
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_file_a_whole_folder_and_an_absent_name_can_be_deleted(folder: Folder) -> None:
    folder.inside("b").write("text", "")
    folder.inside("b").inside("c").write("text", "")
    folder.rename("b/text", "moved")
    assert folder.names() == ["b", "moved"]
    for name in ("b", "moved", "absent"):
        folder.delete(name)
    assert folder.names() == []


def test_an_absent_name_cannot_be_renamed(folder: Folder) -> None:
    folder.make()
    with pytest.raises(OSError, match="absent"):
        folder.rename("absent", "new")


def test_spark_writes_where_the_folder_is(folder: Folder, spark: SparkSession) -> None:
    spark.range(3).write.parquet(folder.place("table"))
    assert folder.names() == ["table"]
    assert spark.read.parquet(folder.place("table")).count() == 3


def test_a_folder_below_a_file_is_none(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    below = folder.inside("below")
    assert below.names() == []
    with pytest.raises(ConfigurationError, match="a/below cannot be "):
        below.make()


@pytest.mark.parametrize("place", ["file:{}", "file://{}", "{}"])
def test_the_scheme_of_a_file_may_be_named(spark: SparkSession, files: Files, tmp_path: Path, place: str) -> None:
    folder = Folder(spark, place.format(tmp_path), files)
    folder.write("text", "")
    assert str(folder) == str(tmp_path)
    assert (tmp_path / "text").exists()


def test_a_client_of_spark_connect_has_its_own_file_system_only(spark: SparkSession) -> None:
    with pytest.raises(
        ConfigurationError, match="abfss://x@y/z is no folder that a client of Spark Connect can write to"
    ):
        Folder(spark, "abfss://x@y/z", PlainFiles())


def test_results_go_where_nothing_is_or_results_are(spark: SparkSession, tmp_path: Path) -> None:
    assert destination(spark, str(tmp_path / "new")).names() == []
    (tmp_path / "new" / "summary.json").write_text("{}")
    assert destination(spark, str(tmp_path / "new")).names() == ["summary.json"]
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="file"):
        destination(spark, str(tmp_path / "file" / "below"))
    with pytest.raises(ConfigurationError, match="nowhere"):
        destination(spark, "nowhere://x/y")
