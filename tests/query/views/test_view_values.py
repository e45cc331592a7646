"""Computed columns of views for some rows."""

import numpy as np
from pyspark import cloudpickle

import tensorlake_spark as tl
from tensorlake_spark.query.views.view_values import ViewValues


def test_some_rows_here_and_elsewhere(tmp_path):
    ds = tl.dataset(tmp_path / "ds", {"x": tl.types.Tensor("int32", (2,)), "n": "int32"})
    ds.extend({"x": np.arange(8, dtype=np.int32).reshape(4, 2), "n": [4, 3, 2, 1]})
    view = ds.query("SELECT x[1] + :more AS y, n FROM dataset ORDER BY n", parameters={"more": 5})
    values = ViewValues(view._plan.result.outputs, view._table, view._plan.parameters)
    for one in (values, cloudpickle.loads(cloudpickle.dumps(values))):
        found = one(1, 3)
        assert np.asarray(found["y"]).tolist() == [10, 8]
        assert np.asarray(found["n"]).tolist() == [2, 3]
