"""Call stacks of suspects on the page of a chain study, and by `./csit why`."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from csit_utils.cli import make_app
from csit_utils.studies.chains import study as chain_page
from resources.libraries.python.model.measurements.node_costs import NodeCost
from resources.libraries.python.model.measurements.stacks import Stacks
from resources.libraries.python.studies.chains.model.record import ChainStacks, ChainStudy
from tests.unit.csit_utils.characterized_pages import made, words
from tests.unit.csit_utils.robot_output import write_output_xml
from tests.unit.csit_utils.sampled_stacks import sampled
from tests.unit.csit_utils.study_records import FAULTY, chain_studied, chain_study

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


def why(*arguments: str | Path) -> Result:
    return CliRunner().invoke(make_app(["why"]), ["why", *map(str, arguments)])


def test_the_page_has_the_graph_of_a_suspect_against_its_reference(study: ChainStudy) -> None:
    page = made(chain_page.PAGE, chain_studied(study, simulated=True))
    html, text = str(page.html), words(page)
    assert "&lt;match&gt; of firewall takes 7538 ns per packet, 1508 in the reference" in text and "SIMULATED" in html
    assert "&lt;match&gt; in firewall: 1508 to 7538 ns per packet (300 and 1500 samples)" in html
    assert "lookup in nat: 1508 to 1508 ns per packet (300 and 300 samples); within the noise of sampling" in html
    assert "ip4-lookup" in text and "123 clocks" in text


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        (sampled(REFERENCE), "perf did not start", "nat &gt; firewall was not sampled: perf did not start"),
        (sampled(REFERENCE), sampled(SUSPECT, received=0), "no packet or no sample of"),
    ],
)
def test_the_page_says_why_there_is_no_graph(a: Stacks, b: Stacks | str, reason: str) -> None:
    text = words(made(chain_page.PAGE, chain_studied(study_with(a, b))))
    assert f"Call stacks are not shown: {reason}" in text and "beside firewall" not in text


def test_why_of_one_side_compares_suspects_with_their_references(study: ChainStudy, tmp_path: Path) -> None:
    file = write_output_xml(tmp_path / "output.xml", [chain_studied(study)])
    folded = tmp_path / "both.folded"
    done = why(file, "--format", "json", "--folded", folded)
    assert done.exit_code == 0, done.exception
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["part"], row["function"]) for row in rows] == [("firewall", "<match>"), ("firewall", "poll")]
    assert rows[0]["ns_per_packet_b"] == pytest.approx(5 * rows[0]["ns_per_packet_a"])
    assert rows[0]["cell"].startswith("nat > firewall beside firewall > nat at ")
    assert "vswitch;forward 400 400" in folded.read_text(encoding="utf-8").splitlines()
    assert why(file, "--cell", "no such").exit_code


def test_why_of_one_side_needs_a_study_with_stacks(tmp_path: Path) -> None:
    file = write_output_xml(tmp_path / "output.xml", [chain_studied(chain_study())])
    message = str(why(file).exception)
    assert message == f"{file} has no suspect with call stacks; run its chain study with -v STACKS:10"
    assert "does not exist; name a file" in str(why(tmp_path / "none.xml").exception)
