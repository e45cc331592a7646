"""Plans of queries that are asked again, such as those of a dashboard: while a dataset shows the same version."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from tensorlake_spark.datasets.dataset import Dataset
from tensorlake_spark.delta.samples.stored_samples import StoredSamples
from tensorlake_spark.query.functions.registry import FUNCTIONS
from tensorlake_spark.query.planning.plan import Plan
from tensorlake_spark.query.planning.queries import plan_query
from tensorlake_spark.query.sources.dataset_source import DatasetSource

_KEPT = 16
"""Plans of a dataset."""

_plans: WeakKeyDictionary[Dataset, tuple[StoredSamples, OrderedDict[Any, Plan]]] = (
    WeakKeyDictionary()
)
"""For each dataset the version that it showed, and plans by what was asked. They hold a copy of the dataset."""

_lock = threading.Lock()


def plan_of(sql: str, sources: Mapping[str, Any], parameters: Mapping[str, Any], seed: int) -> Plan:
    """Return `plan_query`, from memory where the same was asked of the same version of one dataset.

    A query with parameters, or one that reads anything else, is planned each time.
    """
    datasets = [one for one in sources.values() if isinstance(one, Dataset)]
    if parameters or len(datasets) != 1 or datasets[0].version is None or not isinstance(sql, str):
        return plan_query(sql, sources, parameters, seed)
    data = datasets[0]
    users = tuple(one for one in FUNCTIONS if one.users)
    key = sql, tuple((name, one is data) for name, one in sources.items()), seed, users
    with _lock:
        stored, known = _plans.get(data, (None, OrderedDict()))
        if stored is not data.stored:
            _plans[data] = data.stored, (known := OrderedDict())
        plan = known.get(key)
        if plan is not None:
            known.move_to_end(key)
            return plan
    plan = plan_query(sql, sources, parameters, seed)
    read = [*plan.sources.values()]
    if len(read) == 1 and isinstance(read[0], DatasetSource) and read[0].stored is data.stored:
        with _lock:
            known[key] = plan
            while len(known) > _KEPT:
                known.popitem(last=False)
    return plan
