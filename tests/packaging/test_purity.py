"""What an import brings along."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

import tensorlake_spark
import tensorlake_spark as tl

PACKAGE = Path(tensorlake_spark.__file__).parent

# The folder stands in for the package, so that its __init__ does not import the other rooms.
ALONE = """
import json, sys, types
package = types.ModuleType("tensorlake_spark")
package.__path__ = [{folder!r}]
sys.modules["tensorlake_spark"] = package
import {module}
names = {{name.split(".")[0] for name in sys.modules if not name.startswith("_")}}
own = sorted(name for name in sys.modules if name.startswith("tensorlake_spark."))
print(json.dumps([sorted(names - sys.stdlib_module_names), own]))
"""


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def brought(module):
    """Return the packages and the modules of ours that `module` brings, beside what Python starts with."""
    at_start = run("import sys; print(*{name.split('.')[0] for name in sys.modules})").split()
    packages, own = json.loads(run(ALONE.format(folder=str(PACKAGE), module=module)))
    rooms = {name.split(".")[1] for name in own}
    return set(packages) - set(at_start) - {"tensorlake_spark"}, rooms


def modules_after(code):
    return set(run(f"import sys\n{code}\nprint(*sys.modules)").split())


def test_the_package_alone_brings_nothing():
    """So it takes no time: NumPy comes with the first array, pyarrow and deltalake with the first lake."""
    found = {name.split(".")[0] for name in modules_after("import tensorlake_spark")}
    started = {name.split(".")[0] for name in modules_after("")}
    assert found - started - sys.stdlib_module_names == {"tensorlake_spark"}


def test_a_lake_brings_no_more_than_it_needs(tmp_path):
    code = f"import tensorlake_spark as tl\nlake = tl.open({str(tmp_path)!r}); list(lake); tl.SparseTensor"
    found = {name.split(".")[0] for name in modules_after(code)}
    assert {"numpy", "pyarrow", "deltalake"} <= found
    assert not found & {
        "pyspark", "delta", "pandas", "scipy", "matplotlib", "torch", "hypothesis", "ml_dtypes",
        "boto3",
    }  # fmt: skip


def test_reading_brings_no_pandas(tmp_path):
    """pyarrow imports it in many of its conversions: a first read waited a quarter of a second for it."""
    values = np.arange(600.0).reshape(20, 30)
    lake = tl.open(tmp_path)
    lake.write("dense", values)
    for layout in ("bsgs", "coo", "csr", "csc", "csf"):
        lake.write(layout, values * (values % 7 == 0), layout=layout)
    lake.features("wide").write(pa.table({"a": [1.5, 2.5], "b": [None, 3.5], "c": [1, 2]}))
    code = f"""
import tensorlake_spark as tl
lake = tl.open({str(tmp_path)!r})
assert lake["dense"][3, 4] == 94
for layout in ("bsgs", "coo", "csr", "csc", "csf"):
    assert lake[layout][0].nnz == 4 and lake[layout][...].nnz == 85
found = lake.features("wide").read(["a", "c"], rows=slice(0, 2))
assert found.num_columns == 2, found
"""
    assert importlib.util.find_spec("pandas") is not None
    assert "pandas" not in modules_after(code)


def test_indexing_brings_numpy_and_our_errors_only():
    assert brought("tensorlake_spark.indexing") == ({"numpy"}, {"indexing", "errors"})


def test_layouts_and_delta_do_not_know_each_other():
    packages, rooms = brought("tensorlake_spark.layouts")
    assert not packages & {"deltalake", "pyspark", "pandas", "hypothesis"}
    assert not rooms & {"delta", "lake", "spark"}
    packages, rooms = brought("tensorlake_spark.delta.log.snapshot")
    assert "deltalake" in packages
    assert "pyspark" not in packages
    assert not rooms & {"layouts", "lake", "spark"}


def test_errors_bring_nothing():
    assert brought("tensorlake_spark.errors") == (set(), {"errors"})
