"""The front door: what `import tensorlake_spark` shows, and finds when it is asked for."""

import subprocess
import sys

import tensorlake_spark as tl


def answer(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_dir_shows_every_public_name_and_spark():
    assert {*tl.__all__, "spark", "__version__"} <= {*dir(tl)}
    assert all(hasattr(tl, name) for name in dir(tl))
    assert all(hasattr(tl.spark, name) for name in dir(tl.spark))
    assert {*tl.spark.__all__} <= {*dir(tl.spark)}


def test_dir_imports_no_pyspark():
    assert (
        answer("import sys, tensorlake_spark as tl; dir(tl); print('pyspark' in sys.modules)")
        == "False"
    )


def test_the_functions_for_spark_are_found_from_the_package():
    code = "import tensorlake_spark as tl; print(tl.spark.functions.slice_filter.__name__)"
    assert answer(code) == "slice_filter"


def test_errors_and_plans_are_found_from_the_package(tmp_path):
    ref = tl.open(tmp_path).write("x", [1, 2, 3])
    assert isinstance(ref.explain(), tl.ReadPlan)
    assert issubclass(tl.InvalidKeyTypeError, tl.InvalidKeyError)
