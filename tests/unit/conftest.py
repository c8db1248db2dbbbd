"""Property tests: the same examples in every run, so that a failure is of the change and not of the day.

25 of each test, unless it says another number; `--hypothesis-profile=many` takes 100, and `--hypothesis-profile=search`
looks for new ones. How long an example takes says nothing of the code on a machine that does other things, too.
Mutation testing wants to know whether a test fails, not by which least example.
"""

import MLRsearch.config  # noqa: F401 - reads the source of every caller: 2 s among all modules, 0.1 s before them
import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.local_constants import ignore_local_constants

settings.register_profile("many", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", settings.get_profile("many"), max_examples=25)
settings.register_profile("search", deadline=None)
settings.register_profile("mutation", deadline=None, derandomize=True, phases=(Phase.explicit, Phase.generate))
settings.load_profile("same")


@pytest.hookimpl(trylast=True)  # a profile of the command line is loaded before
def pytest_configure() -> None:
    if settings().derandomize:
        ignore_local_constants()
