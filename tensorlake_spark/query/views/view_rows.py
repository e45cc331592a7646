"""The rows of a query, found when they are first asked for; views of parts share them."""

from __future__ import annotations

from tensorlake_spark.query.engine.running import PlanRun
from tensorlake_spark.query.planning.plan import Plan
from tensorlake_spark.threads import CopiedLock


class ViewRows:
    """The rows of a query, found once.

    Parameters
    ----------
    plan : Plan
        The query.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._run: PlanRun | None = None
        self._lock = CopiedLock()

    @property
    def run(self) -> PlanRun:
        """What was found; it is found now, if it was not."""
        with self._lock:
            if self._run is None:
                self._run = PlanRun(self._plan, keyed=bool(self._plan.steps))
            return self._run

    def find_sids(self) -> None:
        """Run the query again, with the sids: they are not read where nobody asks for them."""
        with self._lock:
            self._run = PlanRun(self._plan, keyed=True)

    @property
    def known(self) -> int | None:
        """How many rows there are, None if that is not known yet."""
        return None if self._run is None else int(self._run.table.num_rows)
