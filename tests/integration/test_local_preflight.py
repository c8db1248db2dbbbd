"""The check of this machine: repeatable, and told in words where something is missing."""

import subprocess
import sys

import pytest

from resources.libraries.python.drivers.host.ownership.preflight import check
from tests.integration.robot_runs import PROJECT, environment, network_state, wait_for_network_state

pytestmark = pytest.mark.parallel


@pytest.mark.root
def test_a_check_finds_the_same_again_and_leaves_nothing() -> None:
    before = network_state()
    assert [check() for _ in range(3)] == [(), (), ()]
    wait_for_network_state(before)


def test_doctor_names_what_is_missing_with_the_fix() -> None:
    done = subprocess.run(
        ["setpriv", "--bounding-set=-all", "--inh-caps=-all", sys.executable, "-m", "csit_utils", "doctor"],
        cwd=PROJECT, env=environment(), capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "CAP_NET_ADMIN" in done.stdout
    assert "run as root" in done.stdout
