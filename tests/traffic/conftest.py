"""Smoke tests with real packets, in network namespaces of this machine. They need root, and no package but Python's.

Tests assert facts: packets arrive, a record is there and passed, nothing is left. No rate, time, loss ratio or CPU use
is compared with anything, and deadlines are for a machine several times slower and busy otherwise. So each test has one
try. A fixture starts a run that several tests look at, other tests start their own.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from resources.libraries.python.drivers.host.ownership import preflight
from resources.libraries.python.drivers.host.ownership.ownership import DIRECTORY, MachineLock
from tests.integration.traffic import when_free
from tests.traffic.machine_state import MachineState, wait_for_machine_state


def pytest_configure() -> None:
    # Half a second in every run adds up; neither is what is proved here.
    os.environ["ROBOT_OPTIONS"] = "--variable NOISE_FLOOR:0 --variable QUALIFY:off"


@pytest.fixture(scope="session", autouse=True)
def machine() -> Iterator[MachineState]:
    """The machine as it was before the first test, which it is again after the last one, whatever tests did."""
    if os.geteuid():
        pytest.skip("needs root")
    if problems := preflight.check():
        pytest.skip("; ".join(map(str, problems)))
    with DIRECTORY.with_name("csit-traffic-tests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # between two runs the machine is free, and other tests would take it
        _remove_leftovers()
        before = MachineState.now()
        yield before
        removed = _remove_leftovers()
        wait_for_machine_state(before)
        assert not removed, "tests left this on the machine; it has been removed"


def _remove_leftovers() -> list[str]:
    """Wait for the machine's lock, and remove what runs have left that were killed."""
    lock = MachineLock()
    when_free(lock.__enter__)
    with ExitStack() as held:
        held.push(lock)
        return lock.remove_leftovers()
