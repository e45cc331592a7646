"""Ask datasets, lakes and tables a query, and show the rows, or store them; --help tells how."""

import sys

from tensorlake_spark.jobs.query import main

if __name__ == "__main__":
    sys.exit(main())
