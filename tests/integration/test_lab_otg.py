"""An OTG server as the generator of a lab: only its API is reached, here of a small one beside the TG's ports."""

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from resources.libraries.python.drivers.generators.otg import Otg
from resources.libraries.python.drivers.generators.otg.driver import CONTROLLER, OtgClient
from resources.libraries.python.drivers.generators.otg.flows import ServerPort, configuration, sent_flows
from resources.libraries.python.errors import InUse, Unsupported
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.measurements.trial import Direction, Trial
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.studies.density.model import DensityRecord
from resources.libraries.python.testbed.kinds.factory import make_testbed
from tests.integration.lab import Lab
from tests.integration.lab_runs import needs_lab, state, wait_for_state
from tests.integration.otg_server import OtgServer, make_certificate, serving
from tests.integration.robot_runs import csit, results, run_robot
from tests.unit.drivers.generators.otg.otg_configurations import FORWARD

pytest.importorskip("snappi", reason="snappi is not installed: ./csit setup requirements-otg")
pytestmark = [pytest.mark.root, needs_lab]
PORTS = {"port1": "cab1", "port2": "cab2", "port3": "cab3", "port4": "cab4"}
BOTH_WAYS = (
    FORWARD,
    FORWARD.model_copy(update={"direction": Direction.REVERSE, "tx_interface": "tg-1-2", "rx_interface": "tg-1-1"}),
)
LAB = {"used": True}


@pytest.fixture(scope="module")
def server(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OtgServer]:
    """A server with TLS, of the ports of the TG; its certificate is beside its log."""
    folder, node = tmp_path_factory.mktemp("otg"), lab.nodes["TG"]
    own, _ = make_certificate(folder, node.address)
    arguments = ("--address", node.address, "--certificate", str(own))
    with serving(folder / "server.log", *arguments, network=node.network) as running:
        yield running
        assert "Traceback" not in running.output


def topology(lab: Lab, folder: Path, server: OtgServer, **changes: Any) -> Path:
    """The lab with the server in place of the TG's machine."""
    otg = {"location": server.url, "ca_file": str(server.log.with_name("cert.pem")), "ports": PORTS}
    tg = {
        "access": None, "cpus": None, "generator": {"driver": "otg"}, "otg": otg | changes.pop("otg", {}),
        "interfaces": {port: {"device": None, "driver": None, "numa_node": None} for port in PORTS},
    }  # fmt: skip
    return lab.topology(folder, nodes={"TG": tg}, **changes)


def measured(lab: Lab, server: OtgServer, folder: Path, *options: str, **changes: Any) -> DensityRecord:
    """The record of a cell; the node is afterwards as it was."""
    before = state(lab)
    file = topology(lab, folder, server, **changes)
    common = ("-v", f"TOPOLOGY:{file}", "-v", "NF_SIZES:1c", "-v", "FRAMES:64B", "-v", "NOISE_FLOOR:0.1")
    run_robot(folder / "out", *common, *options)
    wait_for_state(lab, before)
    (row,) = results(folder / "out")
    assert row.passed and not row.simulated
    assert row.facts["generator"]["generator"].startswith("OTG server 1.")
    assert row.facts["generator"]["server"] == server.url
    return row


@pytest.mark.parametrize("discriminator", ["link", "mac"])
def test_the_server_counts_instances_by_any_discriminator(
    lab: Lab, server: OtgServer, tmp_path: Path, discriminator: str
) -> None:
    words = ("-v", "CELLS:2x1", "-v", "SEARCH:quick,mrr=1,mrr_trial=0.2", "--suite", "csc-mrr")
    row = measured(lab, server, tmp_path, *words, discriminator=discriminator)
    assert row.mrr and row.mrr.mean_pps > 1000
    # The first trial has few packets: all of them come back to their instance, and are counted there.
    flows = row.trials[0].flows
    assert [(flow.instance, flow.direction) for flow in flows] == [(each, way) for each in (1, 2) for way in Direction]
    assert all(0.9 * flow.sent <= flow.received <= flow.sent and flow.sent > 150 for flow in flows), flows


def test_a_search_has_throughput_and_latency_of_the_server(lab: Lab, server: OtgServer, tmp_path: Path) -> None:
    words = ("-v", "CELLS:1x1", "-v", "SEARCH:quick,width=0.5,sum=0.3,time=60,latency=0.2", "--suite", "csc-ndrpdr")
    row = measured(lab, server, tmp_path, *words)
    assert row.pdr and row.pdr.lower_pps and row.pdr.lower_pps > 1000
    rows = [each for load in row.latency for each in load.flows]
    assert rows and all(0 < (each.min_ns or 0) <= (each.mean_ns or 0) <= (each.max_ns or 0) for each in rows), rows
    assert all(each.p99_ns is None for each in rows)


@pytest.mark.parametrize(
    ("otg", "said"),
    [
        ({"location": "https://127.0.0.1:1"}, r"OTG server https://127\.0\.0\.1:1: version: .*refused"),
        ({"ca_file": None}, r"OTG server https://\S+: version: .*CERTIFICATE_VERIFY_FAILED"),
    ],
)
def test_a_server_that_is_not_there_or_not_trusted_is_refused_in_a_sentence(
    lab: Lab, server: OtgServer, tmp_path: Path, otg: dict[str, Any], said: str
) -> None:
    file = topology(lab, tmp_path, server, otg=otg)
    done = csit("doctor", str(file), "--format", "json", "--thorough")
    assert done.returncode == 1, done.stdout
    findings = json.loads(done.stdout)["findings"]
    (found,) = [row for row in findings if row["place"] == "nodes.TG" or "OTG server" in row["what"]]
    assert (found["level"], found["place"], found["check"]) == ("problem", "nodes.TG", "generator")
    assert re.match(said, found["what"])
    assert found["fix"] == "start the server, or say where it is by otg.location, verify and ca_file"
    assert any(row["check"] == "drivers" for row in findings), "--thorough asks the nodes, too"
    world = make_testbed(load_topology(file))
    with pytest.raises(Unsupported, match=rf"^TG: {said}") as caught:
        world.open()
    assert "\n" not in str(caught.value)


def test_a_port_that_the_server_lacks_is_named_before_anything_is_deployed(
    lab: Lab, server: OtgServer, tmp_path: Path
) -> None:
    file = topology(lab, tmp_path, server, otg={"ports": PORTS | {"port3": "eth9"}})
    world = make_testbed(load_topology(file))
    with pytest.raises(Unsupported, match=r"^OTG server https://\S+: configuration: .*eth9.*; correct device or"):
        world.open()


def test_what_an_earlier_run_has_left_sending_is_stopped(lab: Lab, server: OtgServer, tmp_path: Path) -> None:
    file = topology(lab, tmp_path, server)
    left = load_topology(file).tg.settings(Otg)
    client = OtgClient(left)
    ports = {"tg-1-1": ServerPort("port1", "cab1"), "tg-1-2": ServerPort("port2", "cab2")}
    trial = Trial(load_pps=1000.0, duration_s=60.0, frame=frame("128B"))
    with subprocess.Popen(["true"]) as ended:
        pass
    sent = sent_flows(BOTH_WAYS, trial, latency=False, sender=f"{CONTROLLER} {ended.pid}")
    client.configure(configuration(sent, ports, trial.duration_s))
    client.transmit("start")
    assert {row.transmit for row in client.flow_metrics().values()} == {"started"}
    world = make_testbed(load_topology(file))
    try:
        removed = world.open()
    finally:
        world.close()
    assert f"TG: stopped 2 flows of {server.url}" in removed
    assert client.flow_metrics() == {}


def test_a_server_is_refused_while_a_run_of_another_testbed_has_it(lab: Lab, server: OtgServer, tmp_path: Path) -> None:
    with Lab(used=True) as other:
        first = make_testbed(load_topology(topology(lab, tmp_path, server)))
        second = make_testbed(load_topology(topology(other, tmp_path, server)))
        first.open()
        try:
            with pytest.raises(InUse, match=rf"^TG \({server.url}\) is in use by another run on this machine$"):
                second.open()
        finally:
            first.close()
        second.open()
        second.close()


def test_a_server_that_sends_flows_of_another_program_is_left_alone(
    lab: Lab, server: OtgServer, tmp_path: Path
) -> None:
    file = topology(lab, tmp_path, server)
    client = OtgClient(load_topology(file).tg.settings(Otg))
    ports = {"tg-1-1": ServerPort("port1", "cab1"), "tg-1-2": ServerPort("port2", "cab2")}
    trial = Trial(load_pps=1000.0, duration_s=60.0, frame=frame("128B"))
    sent = [
        replace(each, name=f"soak {each.name}") for each in sent_flows(BOTH_WAYS, trial, latency=False, sender="lab 1")
    ]
    client.configure(configuration(sent, ports, trial.duration_s))
    client.transmit("start")
    with pytest.raises(
        InUse, match=rf"^OTG server {server.url}: another program sends there \(2 flows, such as soak lab 1 1 "
    ):
        make_testbed(load_topology(file)).open()
    assert {row.transmit for row in client.flow_metrics().values()} == {"started"}
    client.configure({})


def test_ports_of_the_dut_may_be_down_before_a_run(lab: Lab, server: OtgServer, tmp_path: Path) -> None:
    dut = lab.nodes["DUT1"]
    for port in ("cab1", "cab2"):
        dut.run("ip", "link", "set", port, "down")
    try:
        words = ("-v", "CELLS:1x1", "-v", "SEARCH:quick,mrr=1,mrr_trial=0.2", "--suite", "csc-mrr")
        row = measured(lab, server, tmp_path, *words)
        assert row.mrr and row.mrr.mean_pps > 1000
    finally:
        for port in ("cab1", "cab2"):
            dut.run("ip", "link", "set", port, "up")
