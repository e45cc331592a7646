"""Remove a tensor, or a part of one, from every file and every old version; --help tells how."""

import sys

from tensorlake_spark.jobs.purge import main

if __name__ == "__main__":
    sys.exit(main())
