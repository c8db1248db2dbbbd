"""Connections under real packets: what our counts say is what `conntrack` says, to the entry."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from resources.libraries.python.drivers.functions.nftables.program import missing as nft_missing
from resources.libraries.python.drivers.host.programs.program_output import path_of
from resources.libraries.python.model.measurements.trial import Direction, Trial
from resources.libraries.python.model.request.cell import MAX_FLOWS
from resources.libraries.python.model.request.frames import frame, with_flows
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.studies.stateful.model import StatefulDensity
from resources.libraries.python.testbed.node.scripts import tunables
from tests.builders import shipped
from tests.integration.local_functions import conntrack
from tests.integration.robot_runs import (
    PROJECT,
    network_state,
    run_robot,
    study_record,
    study_suite,
    wait_for_network_state,
)
from tests.integration.user_space import cell, deployed

LACK = "; ".join([*map(str, nft_missing()), *([] if path_of("conntrack") else ["conntrack is missing"])])
pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(LACK), reason=LACK)]
TOPOLOGY = shipped("local")
CONNTRACK_MAX = Path("/proc/sys/net/netfilter/nf_conntrack_max")
RECORD = Path("/run/csit-density-tests")
"""The limit before it was changed, which outlives a killed run of these tests but not a restart of the machine."""
SPEC = """
name: small
kind: linux_nat
instances: [1, 2]
frame: 64B
search: quick,width=0.2,trial=0.1,sum=0.5
tear_downs: 2
connections: 5000
"""
FIREWALLS = """
name: firewalls
kind: linux_stateful_firewall
instances: [1]
nodes: [1, 2]
frame: 128B-ip6
search: quick,width=0.2,trial=0.5,sum=1
tear_downs: 3
connections: 1000
capacity: false
"""


@pytest.fixture(scope="module", autouse=True)
def _limit_that_a_killed_run_left() -> None:
    change_limit("restore")


def change_limit(do: str, **asked: object) -> None:
    """Change the machine's limit, with the old one on record until it is restored."""
    answer = tunables.answer({"do": do, "directory": str(RECORD), **asked})
    assert not any(answer.get(key) for key in ("failed", "refused", "failed_paths")), answer


@contextmanager
def most_entries(number: int) -> Iterator[None]:
    """A machine whose tables hold so many entries each."""
    change_limit("apply", settings=[[str(CONNTRACK_MAX), str(number)]], by="tests of connections")
    try:
        yield
    finally:
        change_limit("restore")


def statistic(owner: str, name: str) -> int:
    return sum(map(int, re.findall(rf"\b{name}=(\d+)", conntrack(owner, "-S"))))


def trial(entries: int, instances: int, frame_name: str = "64B") -> Trial:
    """So many connections of each instance, 20,000 per second of all."""
    return Trial(
        load_pps=20_000,
        duration_s=entries * instances / 20_000,
        frame=with_flows(frame(frame_name), MAX_FLOWS),
        only=Direction.FORWARD,
        protocol=Protocol.UDP,
        purpose="connections",
    )


@pytest.mark.parametrize(
    ("kind", "frame_name", "family"), [("linux_nat", "64B", "ipv4"), ("linux_stateful_firewall", "128B-ip6", "ipv6")]
)
def test_entries_and_counters_are_those_of_conntrack(kind: str, frame_name: str, family: str) -> None:
    with deployed(TOPOLOGY, cell("CSC", 2, 1, (NfKind(kind),)), frame_name) as running:
        functions = running.parts.functions
        assert {table.timeout_s for table in functions.hold_connections(77).values()} == {77}
        functions.delete_connections()
        result = running.parts.generator.run(trial(5000, 2, frame_name))
        assert [(flow.instance, flow.direction) for flow in result.flows] == [(n, Direction.FORWARD) for n in (1, 2)]
        # Fewer than 5000 each where the sender's machine stands still.
        sent = {f"nf-{flow.instance}-1": flow.sent for flow in result.flows}
        assert result.received == result.sent > 8000
        tables = functions.connection_tables()
        assert tables.keys() == sent.keys()
        for owner, table in tables.items():
            assert table.entries == int(conntrack(owner, "-C")) == sent[owner]
            assert table.failed == statistic(owner, "insert_failed")
            assert table.dropped == statistic(owner, "drop")
            listed = conntrack(owner, "-f", family, "-L").splitlines()
            assert len(listed) == len({re.sub(r"^udp +17 \d+ ", "", line) for line in listed}) == sent[owner]
        deleted = functions.delete_connections()
        for owner, deletion in deleted.items():
            assert (deletion.entries, deletion.left) == (sent[owner], 0)
            assert int(conntrack(owner, "-C")) == 0
            assert 0 < deletion.seconds < 5
        both = running.parts.generator.run(trial(1000, 2, frame_name).model_copy(update={"only": None}))
        assert {flow.direction for flow in both.flows} == set(Direction), "the next trial goes both ways again"


def test_the_limit_that_a_killed_run_changed_is_restored() -> None:
    before = CONNTRACK_MAX.read_text()
    lines = (
        "import os, signal",
        "from tests.integration.test_stateful_local import most_entries",
        "with most_entries(2345): os.kill(os.getpid(), signal.SIGKILL)",
    )
    run = subprocess.run([sys.executable, "-c", "\n".join(lines)], cwd=PROJECT, check=False)
    assert run.returncode == -signal.SIGKILL and CONNTRACK_MAX.read_text().strip() == "2345"
    change_limit("restore")
    assert CONNTRACK_MAX.read_text() == before


def test_a_full_table_evicts_and_only_its_entries_show_it() -> None:
    with most_entries(3000), deployed(TOPOLOGY, cell("CSC", 1, 1, (NfKind("linux_nat"),))) as running:
        functions = running.parts.functions
        functions.delete_connections()
        result = running.parts.generator.run(trial(5000, 1))
        (table,) = functions.connection_tables().values()
        assert table.limit == 3000
        assert table.entries == int(conntrack("nf-1-1", "-C")) <= 3000
        assert table.evicted == statistic("nf-1-1", "early_drop")
        assert table.dropped == statistic("nf-1-1", "drop")
        assert table.evicted is not None and table.dropped is not None
        assert table.evicted + table.dropped >= 2000
        assert result.received >= result.sent - table.dropped


def studied(folder: Path, spec: str) -> StatefulDensity:
    """What a run of a specification finds."""
    folder.mkdir()
    suite = study_suite(folder, "stateful/nat.yaml", spec)
    before = network_state()
    topology = ("-v", f"TOPOLOGY:{PROJECT}/topologies/local.yaml")
    with most_entries(20_000):
        run_robot(folder / "out", *topology, "-i", "NAT", sources=[suite])
    wait_for_network_state(before)
    found = study_record(folder / "out").stateful
    assert found is not None
    return found


def test_firewalls_and_chains_of_them_track_connections_of_ipv6(tmp_path: Path) -> None:
    found = studied(tmp_path / "firewalls", FIREWALLS)
    assert [cell.name for cell in found.cells] == ["1x1", "1x2"]
    for each in found.cells:
        assert each.rate.lower_cps > 2000
        ratio = (each.rate.search_s - each.rate.emptying_s) / each.rate.sending_s
        print(f"{each.name}: {each.rate.trials} trials, {each.rate.sending_s:.1f} s; search {ratio:.2f} x that")
        assert ratio <= 1.2, each.rate
        # Packets of a fill that a busy machine loses make no entry; of three fills one is whole.
        assert max(sum(tear_down.entries) for tear_down in each.tear_downs) == 1000 * len(each.tables)
        assert each.capacity is None


def test_rates_tear_downs_and_capacity_of_one_and_two_nats(tmp_path: Path) -> None:
    found = studied(tmp_path / "nats", SPEC)
    assert [cell.name for cell in found.cells] == ["1x1", "2x1"]
    for each in found.cells:
        assert each.rate.lower_cps > 0
        assert len(each.rate.by_instance_cps) == each.instances
        assert max(sum(tear_down.entries) for tear_down in each.tear_downs) == 5000 * each.instances
        assert each.tear_down_cps is not None and each.tear_down_cps > 0
        assert each.capacity is not None and each.capacity.refused_at is not None
        assert 0.95 * 20_000 < each.capacity.entries <= 20_000 < each.capacity.refused_at <= 1.06 * 20_000
        assert all(row.entries <= row.sent for made in each.trials for row in made.instances)
