"""Keep a table's files as reads want them; --help tells how."""

import sys

from tensorlake_spark.jobs.optimize import main

if __name__ == "__main__":
    sys.exit(main())
