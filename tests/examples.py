"""How many examples a property test tries: few in ``make test``, ten times as many in ``make soak``."""

import os

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
