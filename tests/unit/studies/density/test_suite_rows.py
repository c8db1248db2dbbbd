"""Rows in the place of placeholders: what their tags and --include name; a run of nothing is a failure."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from robot import running
from robot.api.parsing import get_model
from robot.model import TagPatterns

from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.request.cell import ServiceType, TestType
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.model.testbed.attachment import NICS
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.recording.marker import NOTHING_SELECTED
from resources.libraries.python.recording.writer import write_record
from resources.libraries.python.search.profiles import QUICK
from resources.libraries.python.studies.density import suite_rows
from resources.libraries.python.studies.density.planning.extras import Extras
from resources.libraries.python.studies.density.planning.extras import test_s as planned_s
from resources.libraries.python.studies.density.planning.matrix import PlannedRows, Row, journal_name, make_rows
from resources.libraries.python.studies.density.planning.selection import Selection, parse_selection
from resources.libraries.python.studies.density.search_priors import PriorBook
from resources.libraries.python.studies.density.suite_rows import _Patterns, put_rows, rows_for, suite_choice
from tests.builders import SIM
from tests.unit.csit_utils.builders import result
from tests.unit.planning.labs import csit_lab

CHOICE = {"TOPOLOGY": str(PROJECT / "topologies" / "sim.yaml"), "SERVICE_TYPE": "CSC", "TEST_TYPE": "MRR"}


def selection(include: list[str], **variables: str) -> Selection:
    """What a suite measures, with these options of Robot."""
    _, chosen = suite_choice({**CHOICE, **variables, "OPTIONS": SimpleNamespace(include=include)}.get)
    return chosen


def made(**variables: str) -> PlannedRows:
    return rows_for({**CHOICE, "OPTIONS": SimpleNamespace(include=[]), **variables}.get)


def placeholders(suites: int) -> running.TestSuite:
    whole = running.TestSuite("Density")
    for number in range(suites):
        child = whole.suites.create(f"Suite {number}")
        child.tests.create("Place Of The Rows").body.create_keyword("Mrr Should Be Measured")
    return whole


def test_frames_sizes_and_cells_that_tags_name_are_offered() -> None:
    found = selection(["2c AND imix AND 3R5C", "4C AND 64b AND nf_0.5cORNF_12C NOT 9000B"])
    assert [frame.name for frame in found.frames] == ["IMIX", "64B"]
    assert found.vs_dtcs == (2, 4)
    assert found.points == ((3, 5),)
    assert [sizes[0] for sizes in found.nf_sizes] == ["0.5c", "12c"]


@pytest.mark.parametrize("include", [[], ["CSC"], ["*"], ["?C"], ["PERFTEST NOT IMIX"]])
def test_what_no_tag_names_is_the_default_and_variables_go_before_tags(include: list[str]) -> None:
    assert selection(include) == selection([])
    assert [frame.name for frame in selection([*include, "IMIX"], FRAMES="1518B").frames] == ["1518B"]


def test_the_last_of_all_suites_fails_where_the_run_has_no_test() -> None:
    whole, rows = placeholders(2), made(CELLS="1x1")
    put_rows(whole.suites[0], rows, ["2R1C"])
    assert not whole.suites[0].tests
    put_rows(whole.suites[1], rows, ["2R1C"], ["64B"])
    (test,) = whole.suites[1].tests
    assert (test.name, test.body[0].name) == (NOTHING_SELECTED, "Fail")
    assert "--include 2R1C --exclude 64B" in test.body[0].args[0]
    other = placeholders(2)
    for suite, tag in zip(other.suites, ("1R1C", "2R1C"), strict=True):
        put_rows(suite, rows, [tag])
    assert [len(suite.tests) for suite in other.suites] == [2, 0]


def test_plain_robot_can_include_the_tags_of_the_matrix_and_of_nics() -> None:
    """Robot filters placeholders before rows are made: a tag that they lack selects nothing."""
    suite = get_model((PROJECT / "tests" / "density" / "__init__.robot").read_text(encoding="utf-8"))
    (tags,) = (row.values for section in suite.sections for row in section.body if row.type == "TEST TAGS")
    of_suites = {"CSC", "CHAIN", "MRR"}
    counted = {tag for row in made().rows for tag in row.tags if tag.startswith("eth-") or "DCR" in tag}
    assert {tag for row in made().rows for tag in row.tags} - counted - of_suites <= set(tags)
    real = {name for name in NICS if name.startswith(("Intel", "Mellanox", "Cavium"))}
    assert {f"NIC_{name}" for name in real} <= set(tags)


WORDS = st.sampled_from(["1C", "2c", "64B", "drv_avf", "DRV_AVF", "eth-l2bd-1ch", "CSC", "C S C", "1?", "*F", "other"])
EXPRESSIONS = st.lists(WORDS, min_size=1, max_size=3).flatmap(
    lambda words: st.sampled_from([" AND ", " OR ", " NOT "]).map(lambda joint: joint.join(words))
)


@given(st.lists(EXPRESSIONS, max_size=3), st.lists(WORDS.filter(str.isascii), max_size=4))
def test_patterns_match_as_robots_do(patterns: list[str], tags: list[str]) -> None:
    assert _Patterns(patterns).match(tags) == bool(TagPatterns(patterns).match(tags))


def test_tests_take_as_long_as_before_and_ended_ones_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = {"CELLS": "1x1,1x2,2x1", "NF_SIZES": "1c", "SEARCH": "quick", "TEST_TYPE": "NDRPDR"}
    rows = made(**chosen)
    first, second, third = rows.rows
    spent = {
        "testbed": "sim",
        "asked": MeasurementRequest(test_type=TestType.NDRPDR, cell=first.cell, frame=first.frame, profile=QUICK),
        "finished_at": "2026-11-20T11:02:03.000+00:00",
    }
    write_record(result(ServiceType.CSC, 1, 1).model_copy(update=spent), tmp_path)
    ended = SimpleNamespace(done={(journal_name(second.cell, "64B", "NDRPDR"), "digest"): None})
    monkeypatch.setattr(suite_rows, "past_of", lambda _: ended)
    lookup, book = {**CHOICE, **chosen, "RESUME": "run"}.get, PriorBook(tmp_path)
    planned = planned_s(load_topology(Path(CHOICE["TOPOLOGY"])), third.cell, QUICK, TestType.NDRPDR, Extras())
    assert suite_rows.durations_of(lookup, rows, book) == {first.name: 63.0, second.name: 0.0, third.name: planned}


def rows(topology: Topology, service_type: str = "CSC", **choices: str) -> list[Row]:
    """Rows of one suite, with all that job specifications name."""
    asked = {"cells": "{1,2,4}x{1,2}", "vswitch": "1,2,4", "frames": "64B,IMIX", **choices}
    layout = topology.dut.layout
    return list(make_rows(topology, layout, parse_selection(service_types=service_type, **asked), TestType.MRR).rows)


@pytest.mark.parametrize(
    ("kind", "name", "expression"),
    [
        ("CSP", "64B-4c-eth-l2bd-4pl-8mif-8dcr2t-vppip4-mrr",
         "4c AND 64b AND mrr AND nic_intel-xxv710 AND drv_avf AND eth-l2bd-4pl-8mif-8dcr2t-vppip4"),
        ("VSC", "IMIX-1c-eth-l2bd-2ch-4vh-2vm1t-vppip4-mrr",
         "2T1C AND imix AND vhost AND vm AND nf_vppip4 AND 2r1c AND 2vm1t"),
        ("CSC", "IMIX-2c-eth-l2bd-1ch-2mif-1dcr2t-vppip4-mrr",
         "2_node_single_link_topo AND hw_env AND perftest AND l2bdmaclrn AND base AND memif AND docker AND nf_density "
         "AND chain AND 1r1c AND 1dcr2t AND rxq_size_0 AND txq_size_0 AND eth AND 2c AND imix"),
    ],
)  # fmt: skip
def test_a_line_of_a_job_specification_selects_its_test(kind: str, name: str, expression: str) -> None:
    assert [row.name for row in rows(csit_lab(), kind) if TagPatterns([expression]).match(row.tags)] == [name]


@pytest.mark.parametrize(
    ("topology", "there", "missing"),
    [
        (csit_lab(), {"ETH", "HW_ENV"}, {"3_NODE_SINGLE_LINK_TOPO", "DOT1Q", "VM_ENV", "SOAK", "NDRPDR", "VETH"}),
        (csit_lab(duts=2, discriminator="vlan"), {"3_NODE_SINGLE_LINK_TOPO", "DOT1Q"}, {"ETH"}),
        (csit_lab(model="virtio-net", driver="virtio-pci", vfs=0), {"VM_ENV", "DRV_VFIO_PCI"}, {"HW_ENV"}),
        (csit_lab(containers="linux_router"), {"VETH", "NF_LNXIP4"}, {"MEMIF", "NF_VPPIP4"}),
        (
            csit_lab(vswitch="linux_bridge", containers="linux_firewall", vms="qemu", vfs=0),
            {"VETH", "DRV_I40E", "L2BDMACSTAT", "FEATURE"},
            {"MEMIF", "L2BDMACLRN", "BASE"},
        ),
        (SIM, {"SIM_ENV", "MEMIF"}, {"HW_ENV", "RXQ_SIZE_0"}),
    ],
)
def test_tags_say_what_is_there(topology: Topology, there: set[str], missing: set[str]) -> None:
    tags = set(rows(topology, cells="1x1")[0].tags)
    assert there <= tags
    assert not missing & tags


@pytest.mark.parametrize(
    ("driver", "ports", "tag"),
    [
        ("ice", "auto", "DRV_VFIO_PCI"), ("igb_uio", "dpdk", "DRV_IGB_UIO"), ("mlx5_core", "auto", "DRV_MLX5_CORE"),
        ("mlx5_core", "rdma", "DRV_RDMA_CORE"), ("ice", "af_xdp", "DRV_AF_XDP"), ("ice", "af_packet", "DRV_AF_PACKET"),
        ("virtio_net", "native", "DRV_VIRTIO"),
    ],
)  # fmt: skip
def test_drivers_are_those_that_take_the_ports(driver: str, ports: str, tag: str) -> None:
    made = rows(csit_lab(None, driver, vfs=0, ports=ports), cells="1x1")
    assert {each for each in made[0].tags if each.startswith("DRV_")} == {tag}


def test_suite_ids_say_what_links_are_and_a_soak_is_one_whatever_its_suite_is() -> None:
    assert rows(csit_lab(containers="linux_router"), cells="1x1")[0].name.startswith("64B-1c-eth-l2bd-1ch-2veth-1dcr")
    asked = parse_selection(service_types="CSC", cells="1x1")
    (row, *_) = make_rows(SIM, SIM.dut.layout, asked, TestType.NDRPDR, soak=True).rows
    assert {"SOAK", "NDRPDR"} & set(row.tags) == {"SOAK"}
