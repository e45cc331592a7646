"""Hold every file, row and total of a table against each other; --help tells how."""

import sys

from tensorlake_spark.jobs.check import main

if __name__ == "__main__":
    sys.exit(main())
