"""Tests whose load is a capture: names, tags, and parts of a testbed that cannot send or take it."""

from pathlib import Path

import pytest

from csit_utils.dataset.rows import frame_text
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.cell import TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.studies.density.model.selection import parse_selection
from resources.libraries.python.studies.density.planning.matrix import PlannedRows, make_rows
from tests.captures import MIX, MIX6, pcap


def topology(name: str) -> Topology:
    return load_topology(PROJECT / "topologies" / f"{name}.yaml")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "web.pcap"
    path.write_bytes(pcap(MIX))
    return path


def rows(name: str, file: Path, kind: str = "linux_router") -> PlannedRows:
    asked = parse_selection(service_types="CSC", cells="1x1", nf_sizes="1c", frames=f"64B,pcap:{file}", nf_kinds=kind)
    testbed = topology(name)
    return make_rows(testbed, topology("sim").dut.layout, asked, TestType.MRR)


def test_rows_are_named_after_the_file_and_its_contents(file: Path) -> None:
    digest = frame(f"pcap:{file}").name.rsplit("-", 1)[1]
    plain, own = rows("sim", file).rows
    assert plain.name.startswith("64B-1c-")
    assert own.name == f"pcap-web-{digest}-1c-eth-l2bd-1ch-2mif-1dcr2t-lnxip4-mrr"
    assert f"pcap-web-{digest}" in own.tags
    assert f"pcap:{file}" in own.arguments
    assert frame_text(own.frame) == f"pcap-web-{digest} (7 packets, mean 492B)"


def test_packets_of_ipv6_are_of_rows_of_ipv6(file: Path) -> None:
    file.write_bytes(pcap(MIX6))
    (own,) = [row for row in rows("sim", file.rename(file.with_name("six.pcap"))).rows if row.frame.capture]
    assert "lnxip6" in own.name
    assert "IP6FWD" in own.tags


@pytest.mark.parametrize(
    ("name", "kind", "reason"),
    [
        ("local-trex", "linux_router", "TRex sends no packets of a capture"),
        (
            "local",
            "nginx_proxy",
            "an NF of kind nginx_proxy takes UDP datagrams only, not the packets of a capture",
        ),
    ],
)
def test_a_part_that_cannot_send_or_take_them_is_named(file: Path, name: str, kind: str, reason: str) -> None:
    made = rows(name, file, kind)
    assert [row.frame.name for row in made.rows] == ["64B"]
    assert reason in made.refused[0].refused.reason
