"""The example of a decomposition on the cluster, which has the package as an archive only."""

import subprocess
import sys

import numpy as np
import pytest
from places import ROOT

import tensorlake_spark as tl

AXES = ("day", "hour", "dest", "carrier")


@pytest.mark.soak
def test_two_workers_come_to_the_factors_of_one_process(cluster, tmp_path):
    x = np.random.default_rng(0).poisson(0.2, (30, 24, 12, 9))
    lake = tl.open(tmp_path / "lake")
    lake.write("flights", tl.SparseTensor.from_dense(x), axes=AXES)
    example = ROOT / "examples" / "cp_als.py"
    asked = ["--lake", lake.uri, "--rank", "3", "--rounds", "3", "--tolerance", "0"]
    run = cluster.submit(tmp_path / "run", example, *asked, "--into", "there")
    assert run.wait() == 0, run.text()
    subprocess.run([sys.executable, example, *asked, "--into", "here"], check=True)
    for name in ("weights", *AXES):
        there, here = (lake[f"{place}/{name}"][...] for place in ("there", "here"))
        np.testing.assert_allclose(there, here, rtol=1e-9, atol=1e-12)
