"""A local Spark session with Delta and the settings of ``conf``. Begin with `session`.

`java` finds a Java that Spark runs on. May import every room of ``spark``.
"""

from tensorlake_spark.spark.session.session import CONF, default_settings, fetch, local_session

__all__ = ["CONF", "default_settings", "fetch", "local_session"]
