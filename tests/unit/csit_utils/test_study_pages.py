"""Pages of studies of chains, of interference and of stateful density: what they say and draw of which records."""

import json
import re
from itertools import pairwise, permutations
from statistics import fmean

import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from csit_utils.cli import make_app
from csit_utils.dataset.items import Recorded, Status
from csit_utils.report.pages import environment, overview
from csit_utils.report.site import render
from csit_utils.studies.chains import study as chain_page
from csit_utils.studies.interference import study as interference
from csit_utils.studies.registry import record_kinds, views
from csit_utils.studies.stateful.study import STUDY
from resources.libraries.python.model.measurements.features import Edge
from resources.libraries.python.model.record import Record
from resources.libraries.python.model.result import Rerun
from resources.libraries.python.studies.chains.analysis.classes import Workflow
from resources.libraries.python.studies.chains.model.record import ChainStudy, Suspect
from resources.libraries.python.studies.interference.analysis.sentences import headline
from resources.libraries.python.studies.interference.analysis.study import analyse
from resources.libraries.python.studies.shared.StudyLibrary import study_named
from resources.libraries.python.studies.stateful.model.record import Phase, StatefulDensity
from tests.unit.csit_utils.characterized_pages import drawn, made, shown, words
from tests.unit.csit_utils.stateful_cells import NAT, SPEC, cell, stateful_record, trial
from tests.unit.csit_utils.study_records import FAULTY, TARGETS, chain_studied, chain_study, interfered, traced
from tests.unit.csit_utils.study_records import interference as interference_of
from tests.unit.studies.chains.chain_runs import chain, run
from tests.unit.studies.interference import measurements

HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def study() -> ChainStudy:
    return chain_study()


def test_suspects_are_in_a_table_with_reasons_and_links_to_their_evidence(study: ChainStudy) -> None:
    page = made(chain_page.PAGE, chain_studied(study))
    (anchor,) = (view.anchor for view in views(shown(chain_studied(study)).contents.characterizations))
    assert study.suspects[0].chain == FAULTY
    html, text = str(page.html), words(page)
    assert f'href="#{anchor}-suspect-1"' in html and f'id="{anchor}-suspect-1"' in html
    assert study.suspects[0].reasons[0] in text.replace("&gt;", ">")
    assert "Planted fault: nat is limited to 0.1 CPUs" in text
    assert "proxy did not start" in text and "proxy &gt; ids" in text
    assert "throttled" in text


def test_a_plot_has_the_first_suspect_on_top_and_marks_planted_faults(study: ChainStudy) -> None:
    figure = drawn(chain_page.PAGE, "chains", chain_studied(study))
    assert figure is not None
    order = figure.variants["throughput"]["layout"]["yaxis"]["categoryarray"]
    assert order[-1] == "nat &gt; firewall *" and "*" not in order[0]
    assert len(order) == 16 and "Every chain" in figure.title, "the one that failed is left out"
    loads = figure.variants["throughput"]["data"]
    assert len(loads) == 3
    at = loads[0]["y"].index("nat &gt; firewall *")
    assert loads[0]["x"][at] == pytest.approx(33, abs=1) and "planted" in loads[0]["text"][at]
    assert figure.variants["latency without load"]["data"][0]["x"][0] == pytest.approx(50)


def test_of_many_chains_suspects_and_those_that_lose_most_are_drawn(study: ChainStudy) -> None:
    chains = [chain(*order) for order in permutations([f"nf{number}" for number in range(5)], 4)]
    runs = tuple(run(each, 1e8, 1e8 - 1e5 * number) for number, each in enumerate(chains))
    suspect = study.suspects[0].model_copy(update={"chain": chains[0]})
    figure = drawn(
        chain_page.PAGE, "chains", chain_studied(study.model_copy(update={"runs": runs, "suspects": (suspect,)}))
    )
    assert figure is not None and figure.title.startswith("40 of 120 chains")
    order = figure.variants[""]["layout"]["yaxis"]["categoryarray"]
    assert order[-1].startswith("nf0 ") and len(order) == 40
    assert order[:-1] == [each.name.replace(">", "&gt;") for each in chains[-39:]]


def test_classes_stand_beside_those_of_the_vnf_alone_in_the_order_of_the_table(study: ChainStudy) -> None:
    figure = drawn(chain_page.PAGE, "classes", chain_studied(study))
    assert figure is not None
    data = figure.variants["1. nat > firewall"]["data"]
    assert [trace["name"] for trace in data] == [name for name in Workflow if name in {each["name"] for each in data}]
    idle = next(trace for trace in data if trace["name"] == "idleness")
    shares = dict(zip(idle["x"], idle["y"], strict=True))
    assert shares["nat<br>in the chain"] == pytest.approx(20, abs=1)
    assert shares["nat<br>alone"] == pytest.approx(70, abs=1)
    totals: dict[str, float] = {}
    for trace in data:
        for name, value in zip(trace["x"], trace["y"], strict=True):
            totals[name] = totals.get(name, 0.0) + value
    assert all(total == pytest.approx(100, abs=0.5) for total in totals.values())


def test_a_transition_is_the_wider_the_more_time_it_took_and_a_loop_is_no_point(study: ChainStudy) -> None:
    figure = drawn(chain_page.PAGE, "graphs", chain_studied(study))
    assert figure is not None
    *lines, vertices = figure.variants["1. nat > firewall: firewall"]["data"]
    assert len(vertices["x"]) == 6 and len(lines) == 8
    widths = [line["line"]["width"] for line in lines]
    assert widths == sorted(widths) and widths[-1] == 9.0
    assert "sched_switch:out:S → sched_wakeup" in lines[-1]["hovertemplate"]
    assert "700 times a second, 700 ms in all" in lines[-1]["hovertemplate"]
    (loop,) = (line for line in lines if "skb → netif_receive_skb" in line["hovertemplate"])
    assert len(set(zip(loop["x"], loop["y"], strict=True))) == 4
    assert "switch<br>out:S" in vertices["text"]


def test_only_the_transitions_with_the_most_time_are_drawn_and_the_rest_is_counted(study: ChainStudy) -> None:
    names = [f"e{number}" for number in range(31)]
    edges = tuple(
        Edge(before=one, after=other, count=1, seconds=1e-3 * at) for at, (one, other) in enumerate(pairwise(names), 1)
    )
    graph = traced("nat", 0.5).model_copy(update={"edges": edges})
    runs = tuple(each.model_copy(update={"graphs": (graph,)} if each.graphs else {}) for each in study.runs)
    figure = drawn(chain_page.PAGE, "graphs", chain_studied(study.model_copy(update={"runs": runs})))
    assert figure is not None
    picture = figure.variants["1. nat > firewall: nat"]
    assert len(picture["data"]) == 25
    assert picture["layout"]["annotations"][0]["text"].startswith("the 24 transitions with the most time, 6 more")


def test_studies_without_suspects_traces_or_runs_say_so(study: ChainStudy) -> None:
    bare = study.model_copy(update={"runs": (), "suspects": (), "statistics": ()})
    page = made(chain_page.PAGE, chain_studied(bare))
    assert page.figures == ()
    assert "no suspects" in words(page) and "Workflow classes" not in words(page)
    assert "no suspects" in words(page)


def test_the_page_of_interference_has_placement_advice_and_the_share_of_network_io() -> None:
    page = made(interference.PAGE, interfered())
    text = words(page)
    assert interference_of().advice[0].sentence in text
    assert "of the degradation of pairs comes from network I/O" in text
    for heading in ("Separately and simultaneously", "Share of a resource in each pair", "Interference in pairs"):
        assert heading in text
    rows = interference_of().measurements
    alone_pps = fmean(each.throughput_pps for each in rows if (each.target, each.against) == ("monitor", ()))
    assert f"monitor gateway {alone_pps * 512 * 8 / 1e6:.0f} " in text, "Mbit/s, as in Table I of the paper"
    assert "no counters of cache misses here" in text
    anchor = views(shown(interfered()).contents.characterizations)[0].anchor
    assert f'id="{anchor}-map-monitor-balancer"' in str(page.html)
    assert f'id="{anchor}-map-monitor-alone"' in str(page.html)


@pytest.mark.parametrize("name", ["sweep", "sizing", "chains", "interference", "outage", "stateful"])
def test_the_console_has_the_headline_of_the_page(name: str) -> None:
    assert study_named(name).headline is record_kinds()[name].headline


def test_a_headline_names_no_harm_where_there_is_none() -> None:
    """Where nothing is lost but noise, neither is the lowest mean named."""
    alone: dict[measurements.Company, float] = {(one, (other,)): 1.0 for one in TARGETS for other in TARGETS}
    rows = measurements.measured(dict.fromkeys(TARGETS, 1e5), alone, 10, 0.02)
    free = headline(analyse(measurements.spec_of(*TARGETS), rows))
    assert free.startswith("no interference was found") and "most" not in free
    found = headline(interference_of())
    assert found.startswith("most sensitive is monitor") and "most aggressive is balancer" in found


def test_the_overview_and_the_environment_stand_with_such_records_only(study: ChainStudy) -> None:
    records = (chain_studied(study, simulated=True, testbed="sim", world="sim"), interfered())
    text = words(made(overview.PAGE, *records))
    assert "Chain study" in text and "Interference" in text and "suspects, first nat &gt; firewall" in text
    assert render(environment.PAGE, shown(*records)) is not None


def test_the_test_runs_again_by_its_name_and_with_its_variables(study: ChainStudy) -> None:
    rerun = Rerun(
        topology="topologies/sim.yaml",
        topology_digest="0" * 64,
        suite="tests/characterization/chains.robot",
        variables={"SET": "duration_s=9"},
    )
    text = words(made(chain_page.PAGE, chain_studied(study, rerun=rerun)))
    assert "-v SET:duration_s=9" in text and "Four Network Functions" in text
    assert "tests/characterization/chains.robot" in text


def test_a_study_of_interference_that_is_not_whole_says_how_much_was_measured() -> None:
    found = interfered().interference
    assert found is not None
    whole = headline(found)
    count = len(found.measurements)
    part = headline(found.model_copy(update={"asked": count + 6}))
    assert part == f"{count} of {count + 6} measurements were made; {whole}"


def test_beyond_the_first_twenty_suspects_are_in_the_table_only(study: ChainStudy) -> None:
    suspects: tuple[Suspect, ...] = tuple(study.suspects[:1] * 30)
    html = str(made(chain_page.PAGE, chain_studied(study.model_copy(update={"suspects": suspects}))).html)
    assert html.count("reasons and evidence</summary>") == 20
    assert len(re.findall(r'<td class="num">30</td>', html)) == 1


(PAGE,) = STUDY.pages


def item(found: Record) -> Recorded[Record]:
    return Recorded(record=found, source="output.xml", status=Status.PASS, message="")


def test_packets_lost_before_a_table_are_no_refusal() -> None:
    lost = trial(Phase.CAPACITY, 5_000.0, 990, 1)
    assert not lost.lost_before_tables, "an entry is missing for packets that arrived"
    row = lost.instances[0].model_copy(update={"arrived": 990})
    assert lost.model_copy(update={"instances": (row,)}).lost_before_tables
    assert not lost.model_copy(update={"instances": (row,), "evicted": 1}).lost_before_tables
    assert not trial(Phase.CAPACITY, 5_000.0, 1000, 1).lost_before_tables, "it is complete"


def test_a_rate_at_which_trials_failed_is_not_valid_and_is_no_measure() -> None:
    kind = record_kinds()["stateful"]
    valid = list(kind.rows_of(item(stateful_record())))
    assert [(row.nf_chains, {value.measure: value.value for value in row.measures}) for row in valid] == [
        (1, {"new-connections": 100_000.0, "tear-downs": 500_000.0, "table-capacity": 262_144.0}),
        (2, {"new-connections": 200_000.0, "tear-downs": 1_000_000.0, "table-capacity": 262_144.0}),
    ]
    failed = list(kind.rows_of(item(stateful_record(998))))
    assert [bool(row.measures) for row in failed] == [True, False]
    assert "1 of 2 trials at the rate" in words(made(PAGE, stateful_record(998)))
    assert words(made(PAGE, stateful_record())).count("all tables were empty before each") == 1, "both cells met it"
    assert "not valid" in record_kinds()["stateful"].view(item(stateful_record(998)), 0).headline


def test_a_record_whose_cells_have_different_checks_is_refused() -> None:
    one = cell(1)
    with pytest.raises(ValidationError):
        StatefulDensity(spec=NAT, cells=(one, one.model_copy(update={"checks": one.checks[1:]})))


def test_the_preview_lists_cells_and_time() -> None:
    runner = CliRunner()
    done = runner.invoke(make_app(["stateful"]), ["stateful", str(SPEC)])
    assert done.exit_code == 0, done.output
    assert "nat: 3 cells of linux_nat, about 144 trials" in " ".join(done.output.split())
    lines = runner.invoke(make_app(["stateful"]), ["stateful", str(SPEC), "--format", "json"]).output.splitlines()
    assert [json.loads(line)["object"] for line in lines] == ["cell", "cell", "cell", "summary"]
