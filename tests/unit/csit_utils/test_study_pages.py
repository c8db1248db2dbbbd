"""Pages of studies of chains, of interference and of stateful density: what they say and draw of which records."""

import json
import re
from collections import Counter
from itertools import pairwise, permutations
from statistics import fmean

import pytest
from pydantic import ValidationError

from csit_utils.dataset.items import Recorded, Status
from csit_utils.report import figures as report_figures
from csit_utils.studies.chains import study as chain_page
from csit_utils.studies.chains.plots import furthest
from csit_utils.studies.chains.state_graphs import rates_of
from csit_utils.studies.interference import study as interference
from csit_utils.studies.registry import record_kinds, views
from csit_utils.studies.stateful.study import STUDY
from resources.libraries.python.model.measurements.features import Edge, FeatureSeries
from resources.libraries.python.model.record import Record
from resources.libraries.python.model.result import Rerun
from resources.libraries.python.studies.chains.analysis.classes import Workflow
from resources.libraries.python.studies.chains.analysis.points import regression
from resources.libraries.python.studies.chains.model import (
    ChainsRecord,
    ChainStudy,
    Statistic,
)
from resources.libraries.python.studies.interference.analysis.sentences import headline
from resources.libraries.python.studies.interference.analysis.study import analyse
from resources.libraries.python.studies.shared.StudyLibrary import study_named
from resources.libraries.python.studies.stateful.model import Phase, StatefulDensity
from tests.unit.csit_utils.characterized_pages import drawn, made, shown, words
from tests.unit.csit_utils.datasets import invoked
from tests.unit.csit_utils.stateful_cells import NAT, SPEC, cell, stateful_record, trial
from tests.unit.csit_utils.study_records import (
    FAULTY,
    LOSSY,
    TARGETS,
    VNFS,
    chain_studied,
    chain_study,
    interfered,
    traced,
)
from tests.unit.csit_utils.study_records import interference as interference_of
from tests.unit.studies.chains.chain_runs import chain, graph, run
from tests.unit.studies.interference import measurements


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
    for said in ("nat is limited to 0.1 CPUs", "proxy did not start", "proxy &gt; ids", "throttled"):
        assert said in text


def test_a_plot_has_the_first_suspect_on_top_and_marks_planted_faults(study: ChainStudy) -> None:
    figure = drawn(chain_page.PAGE, "chains", chain_studied(study))
    order = figure.variants["throughput"]["layout"]["yaxis"]["categoryarray"]
    assert order[-1] == "nat &gt; firewall *" and "*" not in order[0]
    assert len(order) == 16 and "Every chain" in figure.title, "the one that failed is left out"
    loads = figure.variants["throughput"]["data"]
    at = loads[0]["y"].index("nat &gt; firewall *")
    assert loads[0]["x"][at] == pytest.approx(33, abs=1) and "planted" in loads[0]["text"][at]
    assert len(loads) == 3 and figure.variants["latency without load"]["data"][0]["x"][0] == pytest.approx(50)


def test_of_many_chains_suspects_and_those_that_lose_most_are_drawn(study: ChainStudy) -> None:
    chains = [chain(*order) for order in permutations([f"nf{number}" for number in range(5)], 4)]
    runs = tuple(run(each, 1e8, 1e8 - 1e5 * number) for number, each in enumerate(chains))
    suspects = (study.suspects[0].model_copy(update={"chain": chains[0]}),)
    figure = drawn(chain_page.PAGE, "chains", with_parts(study, runs=runs, suspects=suspects))
    assert figure.title.startswith("40 of 120 chains")
    order = figure.variants[""]["layout"]["yaxis"]["categoryarray"]
    assert order[-1].startswith("nf0 ") and len(order) == 40
    assert order[:-1] == [each.name.replace(">", "&gt;") for each in chains[-39:]]


def with_parts(study: ChainStudy, **parts: object) -> ChainsRecord:
    return chain_studied(study.model_copy(update=parts))


def test_classes_stand_beside_those_of_the_vnf_alone_in_the_order_of_the_table(study: ChainStudy) -> None:
    data = drawn(chain_page.PAGE, "classes", chain_studied(study)).variants["1. nat > firewall"]["data"]
    assert [trace["name"] for trace in data] == [name for name in Workflow if name in {each["name"] for each in data}]
    idle = next(trace for trace in data if trace["name"] == "idleness")
    shares = dict(zip(idle["x"], idle["y"], strict=True))
    assert shares["nat<br>in the chain"] == pytest.approx(20, abs=1)
    assert shares["nat<br>alone"] == pytest.approx(70, abs=1)
    totals: Counter[str] = Counter()
    for trace in data:
        totals.update(dict(zip(trace["x"], trace["y"], strict=True)))
    assert all(total == pytest.approx(100, abs=0.5) for total in totals.values())


def test_a_transition_is_the_wider_the_more_time_it_took_and_a_loop_is_no_point(study: ChainStudy) -> None:
    figure = drawn(chain_page.PAGE, "graphs", chain_studied(study))
    *lines, vertices = figure.variants["1. nat > firewall: firewall"]["data"]
    assert len(vertices["x"]) == 6 and len(lines) == 8 and "switch<br>out:S" in vertices["text"]
    widths = [line["line"]["width"] for line in lines]
    assert widths == sorted(widths) and widths[-1] == 9.0
    assert "sched_switch:out:S → sched_wakeup" in lines[-1]["hovertemplate"]
    assert "700 times a second, 700 ms in all" in lines[-1]["hovertemplate"]
    (loop,) = (line for line in lines if "skb → netif_receive_skb" in line["hovertemplate"])
    assert len(set(zip(loop["x"], loop["y"], strict=True))) == 4


def test_only_the_transitions_with_the_most_time_are_drawn_and_the_rest_is_counted(study: ChainStudy) -> None:
    ends = enumerate(pairwise(f"e{number}" for number in range(31)))
    edges = tuple(Edge(before=one, after=other, count=1, seconds=1e-3 * (at + 1)) for at, (one, other) in ends)
    graph = traced("nat", 0.5).model_copy(update={"edges": edges})
    runs = tuple(each.model_copy(update={"graphs": (graph,)} if each.graphs else {}) for each in study.runs)
    picture = drawn(chain_page.PAGE, "graphs", with_parts(study, runs=runs)).variants["1. nat > firewall: nat"]
    assert len(picture["data"]) == 25
    assert picture["layout"]["annotations"][0]["text"].startswith("the 24 transitions with the most time, 6 more")


def test_pictures_of_a_study_are_on_its_page_and_none_of_what_is_not_known(study: ChainStudy) -> None:
    ends = [figure.identity.rpartition("-")[2] for figure in made(chain_page.PAGE, chain_studied(study)).figures]
    assert ends[:5] == ["chains", "volumes", "distances", "resources", "series"]
    assert furthest(study)[-2:] == [LOSSY, FAULTY]
    page = made(chain_page.PAGE, with_parts(study, runs=(), suspects=(), statistics=(), costs=()))
    assert page.figures == () and "too few chains to judge" in words(page) and "Workflow classes" not in words(page)


def test_the_page_of_interference_has_placement_advice_and_the_share_of_network_io() -> None:
    page = made(interference.PAGE, interfered())
    text = words(page)
    assert interference_of().advice[0].sentence in text
    assert "of the degradation of pairs comes from network I/O" in text and "no counters of cache misses here" in text
    rows = interference_of().measurements
    alone_pps = fmean(each.throughput_pps for each in rows if (each.target, each.against) == ("monitor", ()))
    assert f"monitor gateway {alone_pps * 512 * 8 / 1e6:.0f} " in text, "Mbit/s, as in Table I of the paper"
    anchor = views(shown(interfered()).contents.characterizations)[0].anchor
    for place in ("monitor-balancer", "monitor-alone"):
        assert f'id="{anchor}-map-{place}"' in str(page.html)


@pytest.mark.parametrize("name", ["sweep", "sizing", "chains", "interference", "outage", "stateful"])
def test_the_console_has_the_headline_of_the_page(name: str) -> None:
    assert study_named(name).headline is record_kinds()[name].headline


def test_a_headline_names_no_harm_where_there_is_none() -> None:
    """Where nothing is lost but noise, neither is the lowest mean named."""
    alone: dict[measurements.Company, float] = {(one, (other,)): 1.0 for one in TARGETS for other in TARGETS}
    rows = measurements.measured(dict.fromkeys(TARGETS, 1e5), alone, 10, 0.02)
    free = headline(analyse(measurements.spec_of(*TARGETS), rows))
    assert free.startswith("no interference was found") and "most" not in free
    found = interference_of()
    assert headline(found).startswith("most sensitive is monitor") and "most aggressive is balancer" in headline(found)
    part = found.model_copy(update={"asked": (count := len(found.measurements)) + 6})
    assert headline(part) == f"{count} of {count + 6} measurements were made; {headline(found)}"


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
    html = str(made(chain_page.PAGE, with_parts(study, suspects=study.suspects[:1] * 30)).html)
    assert html.count("reasons and evidence</summary>") == 20
    assert len(re.findall(r'<td class="num">30</td>', html)) == 1


(PAGE,) = STUDY.pages


def item(found: Record) -> Recorded[Record]:
    return Recorded(record=found, source="output.xml", status=Status.PASS, message="")


def test_packets_lost_before_a_table_are_no_refusal() -> None:
    lost = trial(Phase.CAPACITY, 5_000.0, 990, 1)
    assert not lost.lost_before_tables, "an entry is missing for packets that arrived"
    lost = lost.model_copy(update={"instances": (lost.instances[0].model_copy(update={"arrived": 990}),)})
    assert lost.lost_before_tables and not lost.model_copy(update={"evicted": 1}).lost_before_tables
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


def test_the_preview_lists_cells_and_a_summary() -> None:
    lines = [json.loads(line) for line in invoked("stateful", SPEC, "--format", "json").output.splitlines()]
    assert [line["object"] for line in lines] == ["cell", "cell", "cell", "summary"]
    assert (lines[-1]["cells"], lines[-1]["trials"]) == (3, 144)


def test_distances_are_cooks_of_all_chains_of_one_length(study: ChainStudy) -> None:
    figure = drawn(chain_page.PAGE, "distances", chain_studied(study))
    assert figure.selectors[0] == ("2 VNFs",)
    *lines, threshold = figure.variants["2 VNFs|throughput"]["data"]
    own = [
        each
        for each in study.statistics
        if (each.owner, each.feature) == ("chain", "throughput_bps") and len(each.chain.members) == 2
    ]
    found = regression([each.workload.volume_bps for each in own], [each.mean for each in own])
    at = [at for at, each in enumerate(own) if each.chain == FAULTY and each.workload.volume_bps == 2e8]
    (faulty,) = (line for line in lines if line["name"] == "nat &gt; firewall")
    assert {line["meta"]["colour"] for line in lines[: len(lines) - len(study.suspects)]} == {"dim"}
    assert faulty["y"][-1] == pytest.approx(found.distances[at[0]], rel=1e-4)
    assert threshold["y"][0] == pytest.approx(4 / len(own), rel=1e-4)
    assert faulty["y"][-1] > threshold["y"][0]


def test_extra_cpu_is_the_part_of_the_kernels_threads_and_steps_are_shares_of_a_cpu(study: ChainStudy) -> None:
    single = next(run for run in study.runs if run.chain.order == ("nat",))
    of = {"chain": single.chain, "workload": single.workload, "owner": "nat", "stdev": 0.0, "samples": 3, "filtered": 0}
    means = {"cpu_percent": 50.0, "helper_percent": 12.0}
    rows = tuple(Statistic(feature=name, mean=mean, **of) for name, mean in means.items())
    (variant,) = drawn(chain_page.PAGE, "extra", with_parts(study, statistics=rows)).variants.values()
    assert [(trace["x"], trace["y"]) for trace in variant["data"]] == [(["nat"], [38]), (["nat"], [12])]
    assert drawn(chain_page.PAGE, "extra", with_parts(study, statistics=rows[:1])) is None
    (bar,) = drawn(chain_page.PAGE, "steps", chain_studied(study)).variants["% of one CPU"]["data"]
    assert (bar["x"], bar["y"]) == (["analyse"], [80])


def test_events_are_counted_per_second_and_of_machines_their_exits_only() -> None:
    edges = (
        ("kvm_exit:HLT", "kvm_vcpu_wakeup", 30, 1.0),
        ("kvm_exit:IO_INSTRUCTION", "kvm_pio", 4, 0.1),
        ("kvm_exit:IO_INSTRUCTION", "kvm_userspace_exit", 2, 0.1),
        ("kvm_entry", "kvm_exit:HLT", 30, 0.8),
    )
    machine = graph("nat", *edges).model_copy(update={"source": "kvm", "traced_s": 2.0})
    assert rates_of(machine) == {"HLT": 15, "IO_INSTRUCTION": 3}
    container = machine.model_copy(update={"source": "kernel"})
    assert rates_of(container)["kvm_entry"] == 15
    assert rates_of(machine.model_copy(update={"traced_s": 0.0})) == {}


def test_events_of_a_suspect_stand_beside_those_alone_the_most_frequent_on_top(study: ChainStudy) -> None:
    figure = drawn(chain_page.PAGE, "events", chain_studied(study))
    assert figure.title == "Kernel events per second"
    assert [trace["name"] for trace in figure.variants["VNFs alone"]["data"]] == list(VNFS)
    pair = figure.variants["1. nat > firewall: nat"]["data"]
    assert [trace["name"] for trace in pair] == ["in the chain", "alone"]
    rates = dict(zip(pair[0]["y"], pair[0]["x"], strict=True))
    assert rates["sched_wakeup"] == 700 and rates["netif_receive_skb"] == 712
    assert pair[0]["y"][0] == "netif_receive_skb" and list(rates.values()) == sorted(rates.values(), reverse=True)


def test_every_feature_is_drawn_each_second_and_a_second_without_a_value_is_a_gap(study: ChainStudy) -> None:
    queued = FeatureSeries(owner="nat", feature="queued_packets", values=(1.0, None, 7.0))
    runs = tuple(
        run.model_copy(update={"series": (*run.series, queued)}) if run.chain == FAULTY else run for run in study.runs
    )
    figure = drawn(chain_page.PAGE, "series", with_parts(study, runs=runs))
    assert figure.selectors[0][:2] == ("nat > firewall", "ids > nat")
    lines = figure.variants["nat > firewall|queued packets"]["data"]
    assert [line["name"] for line in lines] == ["nat, 50.0 Mbit/s", "nat, 100 Mbit/s", "nat, 200 Mbit/s"]
    assert (lines[0]["x"], lines[0]["y"]) == ([1, 2, 3], [1, None, 7])
    assert len({line["line"]["dash"] for line in lines}) == 3
    assert figure.variants["ids > nat|queued packets"]["data"] == []


def test_a_page_has_no_more_seconds_than_it_can_show(study: ChainStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    (first,) = [sum(len(one.values) for run in study.runs if run.chain == FAULTY for one in run.series)]
    monkeypatch.setattr(report_figures, "MAX_VALUES", first + 1)
    figure = drawn(chain_page.PAGE, "series", chain_studied(study))
    assert figure.selectors[0] == ("nat > firewall",)
    assert figure.title == "Sampled features over time (1 of 16 chains)"
