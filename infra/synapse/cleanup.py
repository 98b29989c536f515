"""What the job definition of the clean-up starts on a pool."""

import sys

from spark_jobs.cleanup import main

sys.exit(main())
