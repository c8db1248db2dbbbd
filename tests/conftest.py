"""All tests: the collector of cycles looks seldom, and never at what was there before the first test.

By its own thresholds it takes 13 % of the CPU time of the unit tests. Programs that tests start keep compiled modules,
as those of `./csit` do: where images of containers forbid it, each start compiles them, for a second of CPU time.
"""

import gc
import os

import pytest

_OBJECTS = 50_000
"""Made and not yet freed when the collector looks at young ones."""


def pytest_configure() -> None:
    gc.set_threshold(_OBJECTS, 20, 20)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    gc.freeze()
