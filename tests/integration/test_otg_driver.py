"""The driver of OTG servers against a small one of the tests: trials through a real chain, a run that was killed."""

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.libraries.python.drivers.generators.otg import Otg
from resources.libraries.python.drivers.generators.otg.driver import OtgClient
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.measurements.trial import Direction, Trial
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.testbed.kinds.factory import make_testbed
from tests.integration.otg_server import OtgServer, make_certificate, serving, topology
from tests.integration.user_space import cell, deployed, victim

pytest.importorskip("snappi", reason="snappi is not installed: ./csit setup requirements-otg")
pytestmark = [pytest.mark.usefixtures("awake"), pytest.mark.root]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OtgServer]:
    """A server of the ports that runs make."""
    log = tmp_path_factory.mktemp("otg") / "server.log"
    with serving(log, "--namespace", "csit-generator") as running:
        yield running
        assert "Traceback" not in running.output


def test_trials_through_a_router_are_counted_by_flow_with_latency(server: OtgServer) -> None:
    with deployed(topology(server.url), cell("CSC", 1, 1)) as deployment:
        generator = deployment.parts.generator
        trial = Trial(load_pps=2000.0, duration_s=0.5, frame=frame("128B"), probe_pps=100.0)
        result = generator.run(trial)
        assert [(row.direction, row.sent, row.received) for row in result.flows] == [
            (way, 500, 500) for way in Direction
        ], result
        assert not result.generator_limited, result.note
        for row in result.latency:
            assert (row.sent, row.received) == (50, 50)
            assert 0 < (row.min_ns or 0) <= (row.mean_ns or 0) <= (row.max_ns or 0)
        mixed = generator.run(trial.model_copy(update={"frame": frame("IMIX"), "probe_pps": 0.0}))
        assert mixed.sent == mixed.received == pytest.approx(1000, abs=3)
        assert deployment.facts()["generator"]["generator"].startswith("OTG server 1.")
        assert deployment.problems() == ()


def test_a_server_killed_in_a_trial_is_named_and_the_next_trial_uses_another_one(tmp_path: Path) -> None:
    with serving(tmp_path / "server.log", "--namespace", "csit-generator") as own:
        port = own.url.rpartition(":")[2]
        trial = Trial(load_pps=2000.0, duration_s=3.0, frame=frame("128B"))
        with deployed(topology(own.url), cell("CSC", 1, 1)) as deployment:
            generator = deployment.parts.generator
            killer = threading.Timer(1.0, own.end, (signal.SIGKILL,))
            killer.start()
            with pytest.raises(CsitError, match=rf"^OTG server {own.url}: flow metrics: .*refused") as told:
                generator.run(trial)
            killer.join()
            assert "\n" not in str(told.value)
            assert generator.problems() and own.url in generator.problems()[0]
            log = tmp_path / "next.log"
            with serving(log, "--namespace", "csit-generator", "--port", port) as following:
                assert following.url == own.url
                result = generator.run(trial.model_copy(update={"duration_s": 0.5}))
                assert result.sent == result.received == 1000, result
                assert generator.problems() == ()
                generator.stop()


VICTIM = """
import sys, threading, time
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.measurements.trial import Trial
from tests.integration.otg_server import topology
from tests.integration.user_space import cell, deployed
with deployed(topology("URL"), cell("CSC", 1, 1)) as deployment:
    trial = Trial(load_pps=1000.0, duration_s=60.0, frame=frame("128B"))
    client = deployment.parts.generator._client
    start, client.transmit = client.transmit, lambda state: (start(state), print("deployed", flush=True))
    deployment.parts.generator.run(trial)
"""


def test_the_next_run_stops_what_a_killed_one_has_left_sending(server: OtgServer) -> None:
    with victim(VICTIM.replace("URL", server.url)) as run:
        run.kill()
        run.wait()
    client = OtgClient(Otg(location=server.url))
    assert {row.transmit for row in client.flow_metrics().values()} == {"started"}
    world = make_testbed(topology(server.url))
    removed = world.open()
    world.close()
    assert any(sentence.startswith(f"stopped 2 flows of {server.url} of pid") for sentence in removed), removed
    assert {row.transmit for row in client.flow_metrics().values()} == {"stopped"}


def test_a_server_that_is_not_there_or_not_trusted_is_named(tmp_path: Path) -> None:
    with pytest.raises(CsitError, match=r"^OTG server http://127.0.0.1:1: version: .*refused"):
        OtgClient(Otg(location="http://127.0.0.1:1")).version()
    pem, trusted = make_certificate(tmp_path, "127.0.0.1")
    with serving(tmp_path / "server.log", "--certificate", str(pem)) as own:
        with pytest.raises(CsitError, match=r"^OTG server https://127.0.0.1:\d+: version: .*CERTIFICATE_VERIFY_FAILED"):
            OtgClient(Otg(location=own.url)).version()
        assert OtgClient(Otg(location=own.url, ca_file=str(trusted))).version().startswith("1.")
        assert OtgClient(Otg(location=own.url, verify=False)).version().startswith("1.")
