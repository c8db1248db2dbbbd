"""Programs of the generator of TCP connections that are killed."""

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from resources.libraries.python.drivers.generators.httperf.driver import missing
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.measurements.trial import Protocol, Trial
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from tests.integration.robot_runs import PROJECT, network_state, wait_for_network_state
from tests.integration.user_space import cell, deployed, processes

LACK = "; ".join(map(str, missing()))
pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(LACK), reason=LACK)]
TOPOLOGY = load_topology(PROJECT / "topologies" / "local.yaml")
TRIAL = Trial(load_pps=100, duration_s=20.0, frame=frame("64B"), protocol=Protocol.TCP, purpose="connections")


@pytest.fixture(autouse=True)
def _machine_stays_as_it_was() -> Iterator[None]:
    before = network_state()
    yield
    wait_for_network_state(before)
    assert not processes("httperf")


def test_a_killed_client_or_server_of_connections_is_named() -> None:
    with deployed(TOPOLOGY, cell("CSC", 1, 1, (NfKind("linux_nat"),)), generator="httperf") as running:
        generator = running.parts.generator

        def kill() -> None:
            wait_until("a client", lambda: "" if processes("httperf") else "none", 60.0)
            for pid in processes("httperf"):
                os.kill(pid, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        with pytest.raises(CsitError, match=r"^httperf of instance 1 was killed by SIGKILL: "):
            generator.run(TRIAL)
        killer.join()
        assert not running.problems()
        for pid, line in processes("nginx").items():
            if "httperf" in line:  # its folder
                os.kill(pid, signal.SIGKILL)
        (problem,) = running.problems()
        assert problem.startswith("nginx of the generator was killed by SIGKILL"), problem
