"""Drivers of docs/how-to/add-a-driver.md forward real packets and connections in the local world."""

from pathlib import Path

import pytest

from resources.libraries.python.drivers.host.programs.program_output import path_of
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.measurements.trial import Trial
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from tests.how_to_driver import added_drivers, with_bridge
from tests.integration.robot_runs import PROJECT, network_state, wait_for_network_state
from tests.integration.user_space import cell, deployed, machine_stays_as_it_was, send_and_count

pytestmark = [pytest.mark.parallel, pytest.mark.root]
LACKING = [program for program in ("haproxy", "iperf3") if path_of(program) is None]


@pytest.mark.parametrize("isolated", ["true", "false"])
@pytest.mark.parametrize("service_type", ["CSC", "CSP"])
def test_the_vswitch_of_the_page_forwards(service_type: str, isolated: str, tmp_path: Path) -> None:
    before = network_state()
    with (
        added_drivers(tmp_path),
        deployed(load_topology(with_bridge(tmp_path, isolated)), cell(service_type, 2, 2)) as running,
    ):
        send_and_count(running)
        assert not running.parts.switch.problems()
    wait_for_network_state(before)


@pytest.mark.skipif(bool(LACKING), reason=f"not installed: {', '.join(LACKING)}")
@pytest.mark.parametrize("kinds", [("haproxy", "haproxy"), ("haproxy", "linux_router"), ("linux_nat", "haproxy")])
def test_the_network_function_of_the_page_opens_connections_again(kinds: tuple[str, ...], tmp_path: Path) -> None:
    text = (PROJECT / "topologies/local.yaml").read_text(encoding="utf-8")
    file = tmp_path / "iperf3.yaml"
    text = text.replace("driver: auto", "driver: iperf3")
    text = text.replace("    vms:", "    haproxy: {connections: 50}\n    vms:")
    file.write_text(text, encoding="utf-8")
    trial = Trial(load_pps=1000.0, duration_s=2, frame=frame("512B"), sessions=3)
    with (
        machine_stays_as_it_was("haproxy"),
        added_drivers(tmp_path),
        deployed(load_topology(file), cell("CSP", 2, 2, tuple(map(NfKind, kinds)))) as running,
    ):
        functions = running.parts.functions
        before = functions.processed()
        result = running.parts.generator.run(trial)
        assert {each.instance for each in result.sessions} == {1, 2}
        assert all(each.sessions == 3 and each.goodput_bps for each in result.sessions)
        for function in running.plan.functions:
            if function.kind == "haproxy":
                sent = functions.processed()[function.name].packets - before[function.name].packets
                assert sent > 500, "segments of both connections, and their acknowledgements"
        assert functions.facts()["haproxy"].startswith("haproxy 2.")
        assert running.problems() == ()
