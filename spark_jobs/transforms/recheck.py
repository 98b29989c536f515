"""The second look confirms suspects of the first: a document that seemed missing may have been on its way.

The containers are read one after the other, and replicas lag. So the audit reads suspects again, the entities before the
library's container, and reports findings of both looks. For a suspect it reads all documents of its entity, and of the
consumer that is its subject, if that is the key of an entity; for rules about two entities all documents.
"""

from __future__ import annotations

from functools import reduce
from operator import and_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.transforms.schemas import IDENTITY


def confirmed(first: DataFrame, second: DataFrame) -> DataFrame:
    """The findings of the second look that the first look had, too. Both are `schemas.FINDING`."""
    before = first.select(*IDENTITY).distinct().alias("before")
    same = reduce(and_, (F.col(f"before.{name}").eqNullSafe(F.col(f"now.{name}")) for name in IDENTITY))
    return second.alias("now").join(before, same, "left_semi")
