"""A second look: what the first took for damage may have been on its way.

Reads of several containers are not of one moment, and replicas lag. So the suspects are read again, the entities before the
library's container, and what the rules find in both looks is reported. What has to be read again for a finding: all documents
of its entity, and of the consumer that is its subject where that is the key of an entity; for `output_lost` whatever the
entities of the consumer's type have.
"""

from __future__ import annotations

from functools import reduce
from operator import and_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # As everybody calls it.

from spark_jobs.transforms.schemas import IDENTITY


def confirmed(first: DataFrame, second: DataFrame) -> DataFrame:
    """The findings of the second look that the first had, too. Both are `schemas.FINDING`."""
    before = first.select(*IDENTITY).distinct().alias("before")
    same = reduce(and_, (F.col(f"before.{name}").eqNullSafe(F.col(f"now.{name}")) for name in IDENTITY))
    return second.alias("now").join(before, same, "left_semi")
