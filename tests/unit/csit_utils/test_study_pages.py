"""Pages of studies of chains and of interference: what they say and draw of which records."""

import re
from itertools import pairwise, permutations

import pytest

from csit_utils.studies.chains import study as chain_page
from resources.libraries.python.model.measurements.features import Edge
from resources.libraries.python.model.result import Rerun
from resources.libraries.python.studies.chains.analysis.classes import Workflow
from resources.libraries.python.studies.chains.model.record import ChainStudy, Suspect
from tests.unit.csit_utils.characterized_pages import drawn, made, words
from tests.unit.csit_utils.study_records import chain_studied, chain_study, traced
from tests.unit.studies.chains.chain_runs import chain, run


@pytest.fixture(scope="module")
def study() -> ChainStudy:
    return chain_study()


def test_a_plot_has_the_first_suspect_on_top_and_marks_planted_faults(study: ChainStudy) -> None:
    figure = drawn(chain_page.PAGE, "chains", chain_studied(study))
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
    picture = figure.variants["1. nat > firewall: nat"]
    assert len(picture["data"]) == 25
    assert picture["layout"]["annotations"][0]["text"].startswith("the 24 transitions with the most time, 6 more")


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


def test_beyond_the_first_twenty_suspects_are_in_the_table_only(study: ChainStudy) -> None:
    suspects: tuple[Suspect, ...] = tuple(study.suspects[:1] * 30)
    html = str(made(chain_page.PAGE, chain_studied(study.model_copy(update={"suspects": suspects}))).html)
    assert html.count("reasons and evidence</summary>") == 20
    assert len(re.findall(r'<td class="num">30</td>', html)) == 1
