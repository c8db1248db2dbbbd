"""All tests: the collector of cycles looks seldom, and never at what was there before the first test.

By its own thresholds it takes 13 % of the CPU time of the unit tests. Programs that tests start keep compiled modules,
as those of `./csit` do: where images of containers forbid it, each start compiles them, for a second of CPU time. And
they buffer their output as those of users do, whatever such images say.
"""

import gc
import os

import pytest

_OBJECTS = 50_000
"""Made and not yet freed when the collector looks at young ones."""


def pytest_configure() -> None:
    gc.set_threshold(_OBJECTS, 20, 20)
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"):
        os.environ.pop(name, None)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    gc.freeze()
