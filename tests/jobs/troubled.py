"""The ingestion job, whose driver is killed with its JVM, without a word, around its commit.

python troubled.py before|after ARGUMENTS-OF-THE-JOB
"""

import os
import signal
import sys

import tensorlake_spark.spark.source.write.source_writer
from tensorlake_spark.jobs import ingest
from tensorlake_spark.spark.session import local_session
from tensorlake_spark.spark.source.write import direct_write as direct
from tensorlake_spark.spark.source.write.source_writer import TensorWriter


class TroubledWriter(TensorWriter):
    """All tasks end well, and then somebody pulls the plug."""

    when, driver = "", ()

    def commit(self, messages):
        room = tensorlake_spark.spark.source.write.source_writer
        commit = room.commit

        def killed(storage, change):
            if self.when == "after":
                commit(storage, change)
            for pid in (*self.driver, os.getpid()):
                os.kill(pid, signal.SIGKILL)

        room.commit = killed
        super().commit(messages)


def main(when, *arguments):
    """Run the job in a session of its own."""
    session = local_session("local[2]", **{"spark.sql.session.timeZone": "UTC"})
    jvm = session._jvm.java.lang.ProcessHandle.current().pid()
    TroubledWriter.when, TroubledWriter.driver = when, (jvm, os.getpid())
    direct.TensorWriter = TroubledWriter
    return ingest.main(list(arguments), session)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
