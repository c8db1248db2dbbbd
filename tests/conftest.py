"""All tests: the collector of cycles looks seldom, and never at what was there before the first test.

By its own thresholds it takes 13 % of the CPU time of the unit tests. Programs that tests start keep compiled modules,
as those of `./csit` do: where images of containers forbid it, each start compiles them, for a second of CPU time. And
they buffer their output as those of users do, whatever such images say.
"""

import gc
import os
from collections.abc import Generator

import pytest

_CPU_S = pytest.StashKey[float]()
_OBJECTS = 50_000
"""Made and not yet freed when the collector looks at young ones."""


def pytest_configure() -> None:
    gc.set_threshold(_OBJECTS, 20, 20)
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"):
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
