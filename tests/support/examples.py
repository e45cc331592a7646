"""How much tests try: few examples and chosen cases in ``make test``, ten times as many and all in ``make soak``."""

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "default", deadline=None, max_examples=50, suppress_health_check=list(HealthCheck)
)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, print_blob=True)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=500)
settings.load_profile("ci" if os.environ.get("CI") else "default")


def times(factor: float) -> settings:
    """The examples of the profile times a factor, for properties with many sides, or with many files."""
    return settings(max_examples=round(factor * settings().max_examples))


def mostly(cases, chosen):
    """The chosen ones of some cases in ``make test``, all of them in ``make soak``; each a tuple of parameters."""
    assert all(case in cases for case in chosen)
    return [pytest.param(*case, marks=() if case in chosen else pytest.mark.soak) for case in cases]
