"""A study of stateful density over SSH: tables are emptied and counted on the DUT's node while the TG's node sends."""

import os
from pathlib import Path

import pytest

from csit_utils.dataset.load import load
from resources.libraries.python.drivers.generators.trex.registration import Trex
from resources.libraries.python.drivers.generators.trex.requirements import missing as missing_trex
from resources.libraries.python.drivers.host.programs.program_paths import path_of
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.measurements.trial import Protocol, Trial
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.studies.stateful.model.record import Phase
from resources.libraries.python.studies.stateful.model.spec import StatefulSpec
from resources.libraries.python.studies.stateful.tcp import TcpPeer
from resources.libraries.python.testbed.worlds.factory import world_of
from tests.integration.lab import Lab
from tests.integration.lab_runs import TG_CPUS, needs_lab, options, state, wait_for_state
from tests.integration.robot_runs import run_robot, study_suite
from tests.realtime import LOSS, realtime

pytestmark = [pytest.mark.parallel, pytest.mark.root, needs_lab]
SPEC = """
name: small
kind: linux_nat
instances: [2]
frame: 64B
search: quick,width=0.4,trial=0.1,sum=0.3,time=120
tear_downs: 1
connections: 1000
capacity: false
"""
NO_HTTPERF = "; ".join(f"{name} is missing" for name in ("httperf", "nginx") if path_of(name) is None)


@realtime(LOSS)
def test_connections_are_counted_on_their_node_while_another_one_sends(tmp_path: Path) -> None:
    suite = study_suite(tmp_path, "stateful/nat.yaml", f"{SPEC}tcp: {'false' if NO_HTTPERF else 'true'}\n")
    with Lab(used=True) as lab:
        before = state(lab)
        topology = lab.topology(tmp_path, nodes={"TG": {"cpus": TG_CPUS}, "DUT1": {"containers": ["linux_nat"]}})
        done = run_robot(tmp_path / "out", *options(topology), "-i", "NAT", sources=[suite])
        assert done.returncode == 0, done.stdout + done.stderr
        wait_for_state(lab, before)
    record = load([tmp_path / "out" / "output.xml"]).characterizations[0].record
    assert record.world.value == "lab"
    (found,) = record.stateful.cells
    assert list(found.tables) == ["nf-1-1", "nf-2-1"]
    assert found.rate.lower_cps > 0
    assert [each.entries for each in found.tear_downs] == [(1000, 1000)]
    if NO_HTTPERF:
        pytest.skip(f"without TCP: {NO_HTTPERF}")
    assert found.tcp is not None and found.tcp.alone is not None, found.notes
    assert found.tcp.peer.startswith("httperf ") and "nginx " in found.tcp.peer
    assert min(found.tcp.rate.lower_cps, found.tcp.alone.lower_cps) > 10
    trials = [each for each in found.trials if each.phase is Phase.TCP]
    whole = [each for each in trials if each.load_cps == found.tcp.rate.lower_cps and each.complete]
    assert whole and all(row.entries == row.sent > 0 for each in whole for row in each.instances)


TREX = Trex(directory=os.environ.get("CSIT_TREX", "/opt/trex"), ports="af_packet")
NO_PEER = {
    "httperf": NO_HTTPERF,
    "trex_astf": "; ".join(map(str, missing_trex(TREX))),
}


@realtime(LOSS)
@pytest.mark.parametrize(("peer", "instances"), [("httperf", 2), ("trex_astf", 1)])
def test_tcp_connections_between_physical_ports_of_one_node(tmp_path: Path, peer: str, instances: int) -> None:
    if NO_PEER[peer]:
        pytest.skip(NO_PEER[peer])
    spec = StatefulSpec(
        name="small", kind=NfKind("linux_nat"), instances=(instances,), frame=frame("64B"), tcp_peer=peer
    )
    trial = Trial(
        load_pps=200 * instances, duration_s=0.5, frame=frame("64B"), protocol=Protocol.TCP, purpose="connections"
    )
    with Lab(used=True) as lab:
        file = lab.topology(
            tmp_path,
            nodes={
                "TG": {"cpus": TG_CPUS, "trex": TREX.model_dump()},
                "DUT1": {"containers": ["linux_nat"]},
            },
        )
        topology = load_topology(file)
        world = world_of(topology)
        world.open()
        made = TcpPeer(topology, world, spec, profile("quick")).cell(spec.cells[0])
        plan = made.plan()
        try:
            made.deploy(plan)
            functions = made.deployment.parts.functions
            functions.hold_connections(77)
            result = made.measure(trial)
            tables = functions.connection_tables()
        finally:
            removal = made.remove()
            world.close()
    assert [(flow.sent, flow.received) for flow in result.flows] == [(100, 100)] * instances, result.note
    assert {name: table.entries for name, table in tables.items()} == {
        f"nf-{instance}-1": 100 for instance in range(1, instances + 1)
    }
    assert removal is None
