"""The examples, which lie in no package."""

import importlib.util
import sys

import pytest
from places import ROOT


@pytest.fixture(scope="session")
def example():
    """What loads the module of an example."""
    loaded = []

    def load(name):
        spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
        module = sys.modules[name] = importlib.util.module_from_spec(spec)  # dataclasses look there
        loaded.append(name)
        spec.loader.exec_module(module)
        return module

    yield load
    for name in loaded:
        sys.modules.pop(name, None)
