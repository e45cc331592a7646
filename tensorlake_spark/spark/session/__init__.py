"""A local Spark session with Delta and the settings of ``conf``.

Begin with `session`.
May import every room of ``spark``.

`java` finds a Java that Spark runs on.
"""

from tensorlake_spark.spark.session.session import (
    CONF,
    check_missing,
    default_settings,
    fetch,
    local_session,
)

__all__ = ["CONF", "check_missing", "default_settings", "fetch", "local_session"]
