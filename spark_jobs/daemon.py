"""The parent of Spark's Python workers on this machine, in place of `pyspark.daemon`: each worker is a fork of it.

Between two tasks, a worker of PySpark 3.5 reads the list of every zip file anew that it imported from, and collects garbage
in all its modules. That takes 150 ms, which is longer than most tasks do. So PySpark comes from where it is installed, not
from the zip file that Spark puts first; what the tasks need is imported here, and out of the collector's sight.
"""

from __future__ import annotations

import gc
import sys

sys.path[:] = [place for place in sys.path if not place.endswith(".zip")]

from pyspark import daemon, worker  # noqa: E402

from spark_jobs.source import deleter, range_reader, tasks  # noqa: E402
from spark_jobs.transforms import documents, facts  # noqa: E402

IMPORTED = (worker, deleter, range_reader, tasks, documents, facts)

if __name__ == "__main__":
    gc.freeze()
    daemon.manager()  # type: ignore[no-untyped-call]
