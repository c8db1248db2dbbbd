"""All tests: the garbage collector runs seldom, and never over what was there before the first test.

By its own thresholds it takes 13 % of the CPU time of the unit tests. Programs that tests start keep compiled modules,
as those of `./csit` do: where images of containers forbid it, each start compiles them, for a second of CPU time. And
they buffer their output as those of users do, whatever such images say.
"""

import gc
import os
from collections.abc import Generator

import pytest

_OF_A_USER = (
    *("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONOPTIMIZE", "PYTHONSAFEPATH", "PYTHONWARNINGS"),
    *("ROBOT_OPTIONS", "PYTEST_ADDOPTS", "PYTEST_PLUGINS", "CSIT_RESERVATION"),
)
"""Variables of the environment that change what programs do which tests start, as those of git do."""
_CPU_S = pytest.StashKey[float]()
_OBJECTS = 50_000
"""Made and not yet freed when the collector looks at young ones."""


@pytest.hookimpl(tryfirst=True)  # folders of tests set some of the variables
def pytest_configure() -> None:
    gc.set_threshold(_OBJECTS, 20, 20)
    for name in (*_OF_A_USER, *(name for name in os.environ if name.startswith("GIT_"))):
        os.environ.pop(name, None)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    """The CPU time of each test, with that of programs that have ended, goes into the JUnit file."""
    item.stash[_CPU_S] = _cpu_s()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    try:
        return (yield)
    finally:
        item.user_properties.append(("cpu_s", round(_cpu_s() - item.stash[_CPU_S], 3)))


def _cpu_s() -> float:
    return sum(os.times()[:4])
