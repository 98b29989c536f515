"""Folders of any file system that the job can write to. Files and folders are replaced as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from uuid import uuid4

from pyspark.sql import SparkSession

from exactlyonce.errors import ConfigurationError
from spark_jobs.spark.files import Files, files_of

_UNFINISHED: Final = ".unfinished-"


class Folder:
    """A folder, which may be absent.

    Args:
        spark: knows the file systems.
        place: path or URI, such as `reports/audit` or `abfss://reports@account.dfs.core.windows.net/audit`.
        files: the file system of the place; the one that Spark knows by default.

    Raises:
        ConfigurationError: Spark knows no such file system.
    """

    def __init__(self, spark: SparkSession, place: str, files: Files | None = None) -> None:
        self._spark = spark
        self._files = files or files_of(spark, place)
        self._path = self._files.path(place)

    def __str__(self) -> str:
        return self._path.removeprefix("file:")

    def place(self, name: str) -> str:
        """Path of a name in this folder, as Spark's readers and writers take it."""
        return f"{self._path}/{name}"

    def names(self) -> list[str]:
        """Names of all files and folders in it, sorted; none if the folder is absent."""
        return sorted(self._files.names(self._path)) if self._files.exists(self._path) else []

    def read(self, name: str) -> str:
        """The text of a file."""
        return self._files.read(self.place(name)).decode()

    def write(self, name: str, text: str) -> None:
        """Write a file, as a whole or not at all."""
        unfinished = f"{_UNFINISHED}{uuid4().hex}"
        content = text.encode("utf-8", "backslashreplace")  # A lone surrogate is no reason to fail.
        self._files.write(self.place(unfinished), content)
        self.delete(name)
        self.rename(unfinished, name)

    def rename(self, old: str, new: str) -> None:
        """Rename a file or folder in this folder."""
        self._files.rename(self.place(old), self.place(new))

    def delete(self, name: str) -> None:
        """Delete a file, or a folder with all its content, if it is there."""
        self._files.delete(self.place(name))

    def inside(self, name: str) -> Folder:
        """The folder of this name in this one."""
        return Folder(self._spark, self.place(name), self._files)

    @contextmanager
    def replaced(self) -> Iterator[Folder]:
        """A new folder that takes the place of this one at the end of the `with` block, unless the block raises."""
        unfinished, former = self._neighbour(), self._neighbour()
        try:
            yield unfinished
            if self._files.exists(self._path):
                self._move(self, former)
            self._move(unfinished, self)
            former.discard()
        except BaseException:
            unfinished.discard()
            raise

    def make(self) -> None:
        """Create the folder. Raises `ConfigurationError` if that is not possible."""
        self._files.make(self._path)

    def _neighbour(self) -> Folder:
        """A folder with a name of its own next to this one; not created yet."""
        return Folder(self._spark, f"{self._path}{_UNFINISHED}{uuid4().hex}", self._files)

    def discard(self) -> None:
        """Delete the folder with all its content."""
        self._files.delete(self._path)

    def _move(self, old: Folder, new: Folder) -> None:
        self._files.rename(old._path, new._path)


def results_folder(spark: SparkSession, place: str, job: str, files: set[str]) -> Folder:
    """The folder of a job's results, created if it is absent.

    Args:
        spark: knows the file systems.
        place: path or URI.
        job: its name for an error, such as "an audit".
        files: names that every folder of its results has.

    Raises:
        ConfigurationError: the folder holds other files, or cannot be written.
    """
    folder = Folder(spark, place)
    names = set(folder.names())
    if names and not names >= files:
        raise ConfigurationError(
            f"{folder} holds something else than results of {job}, which would be deleted: name another folder with --out."
        )
    folder.make()
    return folder
