"""`./csit why` and call stacks on pages: functions of two sides, and of suspect chains beside their references."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from csit_utils.cli import make_app
from csit_utils.studies.chains import study as chain_page
from resources.libraries.python.model.measurements.node_costs import NodeCost
from resources.libraries.python.model.measurements.stacks import Stacks, described
from resources.libraries.python.model.request.cell import ServiceType
from resources.libraries.python.studies.chains.model import ChainStacks, ChainStudy
from resources.libraries.python.studies.density.model import DensityRecord
from tests.unit.csit_utils.builders import result
from tests.unit.csit_utils.characterized_pages import made, words
from tests.unit.csit_utils.datasets import dataset_of, html_of, plain
from tests.unit.csit_utils.rendered_pages import Page, page_of
from tests.unit.csit_utils.robot_output import write_output_xml
from tests.unit.csit_utils.sampled_stacks import sampled
from tests.unit.csit_utils.study_records import FAULTY, chain_studied, chain_study

FEW = {"nf-1-1;poll;filter": 100, "nf-1-1;poll;<route>": 400, "vswitch;poll": 500}
MANY = {"nf-1-1;poll;filter": 400, "nf-1-1;poll;<route>": 300, "vswitch;poll": 300}


def run(*arguments: str | Path, command: str = "why") -> Result:
    return CliRunner().invoke(make_app([command]), [command, *map(str, arguments)])


def stacked(stacks: dict[str, int], chains: int = 1, night: int = 20) -> DensityRecord:
    found = sampled(stacks)
    return result(
        ServiceType.CSC, chains, stacks=found, stacks_sampled=described(found),
        started_at=f"2026-11-{night}T11:01:00Z",
    )  # fmt: skip


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("sides")
    return (
        write_output_xml(folder / "few.xml", [stacked(FEW), stacked(FEW, 2)]),
        write_output_xml(folder / "many.xml", [stacked(MANY, night=21), stacked(FEW, 2, night=21)]),
    )


def test_what_grew_is_named_with_its_time_per_packet(sides: tuple[Path, Path]) -> None:
    done = run(*sides, "--format", "json")
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert {row["cell"] for row in rows} == {"CSC 1x1 NF-1c vSwitch-1c 64B"}
    first = rows[0]
    assert (first["part"], first["function"], first["share_a"], first["share_b"]) == ("nf-1-1", "filter", 0.1, 0.4)
    assert first["ns_per_packet_b"] == pytest.approx(4 * first["ns_per_packet_a"]) and first["significant"]
    assert "64B: 4 functions beyond the noise of 1000 and 1000 samples" in done.stderr


def test_sides_without_stacks_or_without_a_common_cell_are_refused(sides: tuple[Path, Path], tmp_path: Path) -> None:
    plain = write_output_xml(tmp_path / "plain.xml", [result()])
    for given, sentence in (
        ((sides[0], plain), "plain.xml: no test has call stacks; run it with -v STACKS:10"),
        ((*sides, "--cell", "9x9"), "have no cell 9x9 with call stacks in common"),
    ):
        done = run(*given)
        assert done.exit_code and sentence in str(done.exception)


def test_the_compare_page_has_the_graph_of_a_cell_on_both_sides() -> None:
    found = dataset_of(stacked(FEW), source="monday.xml")
    found.recorded += dataset_of(stacked(MANY, night=21), source="tuesday.xml").recorded
    page = Page(html_of(found))
    assert any(tip.startswith("filter in nf-1-1: 10 % to 40 % (100 and 400 samples)") for tip in page.tips())
    assert "<route> in nf-1-1: 40 % to 30 % (400 and 300 samples); 2010 to 1508 ns per packet" in page.tips()
    assert "Why: CPU time" not in page_of(result(), result(started_at="2026-11-21T10:00:00Z")).text


def nights(levels: list[tuple[float, dict[str, int]]]) -> list[DensityRecord]:
    found = [(rate, sampled(stacks)) for rate, stacks in levels]
    return [
        plain(
            1, 1, rate * (1 + 0.002 * (night % 3)), stacks=stacks, stacks_sampled=described(stacks),
            started_at=f"2026-11-{night:02d}T11:00:00Z", test_id=f"Density.Night {night}",
        )
        for night, (rate, stacks) in enumerate(found, 1)
    ]  # fmt: skip


def test_a_step_of_the_trend_has_the_graph_of_the_levels_before_and_after() -> None:
    found = dataset_of()
    for record in nights([(3e5, FEW)] * 8 + [(2e5, MANY)] * 8):
        found.recorded += dataset_of(record, source=f"{record.started_at}.xml").recorded
    page = Page(html_of(found))
    assert "since 2026-11-09" in page.text and "\u221233 %" in page.text
    # All eight nights of each level count, and not only those beside the step.
    assert any(tip.startswith("filter in nf-1-1: 10 % to 40 % (800 and 3200 samples)") for tip in page.tips())


def test_a_gate_that_fails_says_which_function_has_grown(tmp_path: Path) -> None:
    records = nights([(3e5, FEW)] * 3 + [(2e5, MANY)])
    for number, record in enumerate(records[:3]):
        (tmp_path / "before" / f"{number}").mkdir(parents=True)
        write_output_xml(tmp_path / "before" / f"{number}" / "output.xml", [record])
    after = write_output_xml(tmp_path / "after.xml", records[3:])
    done = run(tmp_path / "before", after, command="gate")
    assert done.exit_code == 1 and done.stdout, done.exception
    lines = done.stdout.splitlines()
    assert lines[0].startswith("fell\t")
    why = [line for line in lines if line.startswith("why\t")]
    assert why == ["why\tCSC 1x1 NF-1c vSwitch-1c 64B\tfilter of nf-1-1 takes 40 % of the CPU time, 10 % before"]


REFERENCE = {"nat;poll;lookup": 300, "firewall;poll;<match>": 300, "vswitch;forward": 400}
SUSPECT = {"nat;poll;lookup": 300, "firewall;poll;<match>": 1500, "vswitch;forward": 400}


def study_with(a: Stacks | str, b: Stacks | str) -> ChainStudy:
    """A study whose first suspect and its reference have call stacks, or a reason for none."""
    study = chain_study()
    first = study.suspects[0]
    assert first.chain == FAULTY and first.reference is not None
    rows = [
        ChainStacks(chain=chain, workload=first.reference.workload, throughput_bps=1e8, failed=found)
        if isinstance(found, str)
        else ChainStacks(chain=chain, workload=first.reference.workload, throughput_bps=1e8, stacks=found)
        for chain, found in ((first.reference.chain, a), (first.chain, b))
    ]
    return study.model_copy(update={"stacks": tuple(rows)})


@pytest.fixture(scope="module")
def study() -> ChainStudy:
    counted = NodeCost(part="vswitch", node="ip4-lookup", packets=17, cost=123.0)
    told = sampled(SUSPECT).model_copy(update={"accounts": (counted,)})
    return study_with(sampled(REFERENCE), told)


def test_the_page_has_the_graph_of_a_suspect_against_its_reference(study: ChainStudy) -> None:
    page = made(chain_page.PAGE, chain_studied(study, simulated=True))
    html, text = str(page.html), words(page)
    assert "&lt;match&gt; of firewall takes 7538 ns per packet, 1508 in the reference" in text and "SIMULATED" in html
    assert "&lt;match&gt; in firewall: 1508 to 7538 ns per packet (300 and 1500 samples)" in html
    assert "lookup in nat: 1508 to 1508 ns per packet (300 and 300 samples); within the noise of sampling" in html
    assert "ip4-lookup" in text and "123 clocks" in text


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ("perf did not start", "nat &gt; firewall was not sampled: perf did not start"),
        (sampled(SUSPECT, received=0), "no packet or no sample of"),
    ],
)
def test_the_page_says_why_there_is_no_graph(found: Stacks | str, reason: str) -> None:
    text = words(made(chain_page.PAGE, chain_studied(study_with(sampled(REFERENCE), found))))
    assert f"Call stacks are not shown: {reason}" in text and "beside firewall" not in text


def test_why_of_one_side_compares_suspects_with_their_references(study: ChainStudy, tmp_path: Path) -> None:
    file = write_output_xml(tmp_path / "output.xml", [chain_studied(study)])
    folded = tmp_path / "both.folded"
    done = run(file, "--format", "json", "--folded", folded)
    assert done.exit_code == 0, done.exception
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["part"], row["function"]) for row in rows] == [("firewall", "<match>"), ("firewall", "poll")]
    assert rows[0]["ns_per_packet_b"] == pytest.approx(5 * rows[0]["ns_per_packet_a"])
    assert rows[0]["cell"].startswith("nat > firewall beside firewall > nat at ")
    assert "vswitch;forward 400 400" in folded.read_text(encoding="utf-8").splitlines()
    assert run(file, "--cell", "no such").exit_code


def test_why_of_one_side_needs_a_study_with_stacks(tmp_path: Path) -> None:
    file = write_output_xml(tmp_path / "output.xml", [chain_studied(chain_study())])
    message = str(run(file).exception)
    assert message == f"{file} has no suspect with call stacks; run its chain study with -v STACKS:10"
    assert "does not exist; name a file" in str(run(tmp_path / "none.xml").exception)
