"""Delete files that no version within the retention needs; --help tells how."""

import sys

from tensorlake_spark.jobs.vacuum import main

if __name__ == "__main__":
    sys.exit(main())
