"""What the job definition of the audit starts on a pool."""

import sys

from spark_jobs.audit import main

sys.exit(main())
