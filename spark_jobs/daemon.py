"""The parent of Spark's Python workers on this machine, in place of `pyspark.daemon`, which forks each worker.

Between two tasks, a worker of PySpark 3.5 reads the list of every imported zip file anew, and collects garbage in all modules.
That takes 150 ms, longer than most tasks. So PySpark comes from the installation, not from the zip file that Spark puts first;
modules of the tasks are imported here, out of the collector's sight.
"""

from __future__ import annotations

import gc
import sys

sys.path[:] = [place for place in sys.path if not place.endswith(".zip")]

from pyspark import daemon, worker  # noqa: E402

from spark_jobs.source import feed_ranges, tasks  # noqa: E402
from spark_jobs.transforms import documents, facts  # noqa: E402

IMPORTED = (worker, feed_ranges, tasks, documents, facts)

if __name__ == "__main__":
    gc.freeze()
    daemon.manager()  # type: ignore[no-untyped-call]
