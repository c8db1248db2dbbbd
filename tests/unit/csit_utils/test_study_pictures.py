"""Pictures of studies of chains over volume, over time and by events: which values are drawn."""

import pytest

from csit_utils.report import figures as report_figures
from csit_utils.studies.chains import study as page
from csit_utils.studies.chains.plots import furthest
from csit_utils.studies.chains.state_graphs import rates_of
from resources.libraries.python.model.measurements.features import Edge, FeatureSeries
from resources.libraries.python.studies.chains.analysis.points import regression
from resources.libraries.python.studies.chains.model.record import ChainStudy, Statistic, StepCost
from tests.unit.csit_utils.characterized_pages import drawn, made
from tests.unit.csit_utils.study_records import FAULTY, LOSSY, VNFS, chain_studied, chain_study
from tests.unit.studies.chains.chain_runs import graph


@pytest.fixture(scope="module")
def study() -> ChainStudy:
    return chain_study()


def test_throughput_of_each_chain_is_drawn_against_its_volume_and_suspects_stand_out(study: ChainStudy) -> None:
    figure = drawn(page.PAGE, "volumes", chain_studied(study))
    lines = figure.variants[""]["data"]
    suspects = {each.chain.name.replace(">", "&gt;"): "dim" for each in study.suspects}
    others = [line for line in lines if line["meta"]["colour"] == "dim"]
    named = [line for line in lines if line not in others]
    assert {line["name"] for line in named} == set(suspects) and named == lines[-len(named) :], "on top"
    assert all(line["text"][-1] == line["name"] for line in named)
    assert sum(line["showlegend"] for line in others) == 1
    lossy = next(line for line in named if line["name"] == "ids &gt; nat")
    assert lossy["meta"]["facets"] == {"VNFs": "ids, nat"}
    assert lossy["x"] == [50, 100, 200]
    assert lossy["y"] == pytest.approx([25, 50, 100], rel=0.03), "half of it is lost"
    assert len(lines) == 16, "of four VNFs alone and of twelve pairs"


def test_distances_are_cooks_of_all_chains_of_one_length(study: ChainStudy) -> None:
    figure = drawn(page.PAGE, "distances", chain_studied(study))
    assert figure is not None and figure.selectors[0] == ("2 VNFs",)
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


def test_resources_of_a_vnf_alone_lie_beside_those_in_its_chains(study: ChainStudy) -> None:
    figure = drawn(page.PAGE, "resources", chain_studied(study))
    assert figure is not None and figure.selectors[0] == ("VNFs alone", *VNFS)
    alone = figure.variants["VNFs alone|CPU"]["data"]
    assert {line["name"] for line in alone} == set(VNFS)
    lines = figure.variants["nat|CPU"]["data"]
    (single,) = (line for line in lines if line["name"] == "nat alone")
    (faulty,) = (line for line in lines if line["name"] == "nat &gt; firewall")
    assert single["line"]["width"] == 4
    assert len(lines) == 1 + 6, "in six of the twelve pairs"
    means = {
        each.workload.volume_bps / 1e6: each.mean
        for each in study.statistics
        if (each.owner, each.feature, each.chain) == ("nat", "cpu_percent", FAULTY)
    }
    assert dict(zip(faulty["x"], faulty["y"], strict=True)) == pytest.approx(means, rel=1e-4)


def test_extra_cpu_is_the_part_of_the_kernels_threads(study: ChainStudy) -> None:
    single = next(run for run in study.runs if run.chain.order == ("nat",))
    rows = tuple(
        Statistic(chain=single.chain, workload=single.workload, owner="nat", feature=name, mean=mean, stdev=0.0,
                  samples=3, filtered=0)
        for name, mean in (("cpu_percent", 50.0), ("helper_percent", 12.0))
    )  # fmt: skip
    figure = drawn(page.PAGE, "extra", chain_studied(study.model_copy(update={"statistics": rows})))
    (variant,) = figure.variants.values()
    assert [(trace["x"], trace["y"]) for trace in variant["data"]] == [(["nat"], [38]), (["nat"], [12])]
    assert drawn(page.PAGE, "extra", chain_studied(study.model_copy(update={"statistics": rows[:1]}))) is None


def test_steps_of_a_study_are_drawn_as_shares_of_a_cpu_and_as_time(study: ChainStudy) -> None:
    costs = (
        StepCost(step="sample features", cpu_s=0.5, lasted_s=10.0),
        StepCost(step="analyse", cpu_s=2.0, lasted_s=2.5),
    )
    figure = drawn(page.PAGE, "steps", chain_studied(study.model_copy(update={"costs": costs})))
    bars = {way: variant["data"][0] for way, variant in figure.variants.items()}
    assert {way: (bar["x"], bar["y"]) for way, bar in bars.items()} == {
        "% of one CPU": (["sample features", "analyse"], [5, 80]),
        "CPU time": (["sample features", "analyse"], [0.5, 2]),
    }
    assert drawn(page.PAGE, "steps", chain_studied(study)) is None, "of steps that are not known"


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
    figure = drawn(page.PAGE, "events", chain_studied(study))
    assert figure is not None and figure.title == "Kernel events per second"
    assert [trace["name"] for trace in figure.variants["VNFs alone"]["data"]] == list(VNFS)
    pair = figure.variants["1. nat > firewall: nat"]["data"]
    assert [trace["name"] for trace in pair] == ["in the chain", "alone"]
    rates = dict(zip(pair[0]["y"], pair[0]["x"], strict=True))
    assert rates["sched_wakeup"] == 700 and rates["netif_receive_skb"] == 712
    assert pair[0]["y"][0] == "netif_receive_skb" and list(rates.values()) == sorted(rates.values(), reverse=True)


def test_events_of_machines_are_called_exit_reasons(study: ChainStudy) -> None:
    edge = Edge(before="kvm_exit:HLT", after="kvm_entry", count=10, seconds=0.5)
    runs = tuple(
        run.model_copy(
            update={"graphs": tuple(one.model_copy(update={"edges": (edge,), "source": "kvm"}) for one in run.graphs)}
        )
        for run in study.runs
    )
    figure = drawn(page.PAGE, "events", chain_studied(study.model_copy(update={"runs": runs})))
    assert figure is not None and figure.title == "VM exit reasons per second"
    assert figure.variants["VNFs alone"]["data"][0]["y"] == ["HLT"]


def test_every_feature_is_drawn_each_second_and_a_second_without_a_value_is_a_gap(study: ChainStudy) -> None:
    def of_nat(run_series: tuple[FeatureSeries, ...]) -> tuple[FeatureSeries, ...]:
        return (*run_series, FeatureSeries(owner="nat", feature="queued_packets", values=(1.0, None, 7.0)))

    runs = tuple(
        run.model_copy(update={"series": of_nat(run.series)}) if run.chain == FAULTY else run for run in study.runs
    )
    figure = drawn(page.PAGE, "series", chain_studied(study.model_copy(update={"runs": runs})))
    assert figure is not None and figure.selectors[0][:2] == ("nat > firewall", "ids > nat")
    lines = figure.variants["nat > firewall|queued packets"]["data"]
    assert [line["name"] for line in lines] == ["nat, 50.0 Mbit/s", "nat, 100 Mbit/s", "nat, 200 Mbit/s"]
    assert (lines[0]["x"], lines[0]["y"]) == ([1, 2, 3], [1, None, 7])
    assert len({line["line"]["dash"] for line in lines}) == 3
    assert figure.variants["ids > nat|queued packets"]["data"] == []


def test_a_page_has_no_more_seconds_than_it_can_show(study: ChainStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    (first,) = [sum(len(one.values) for run in study.runs if run.chain == FAULTY for one in run.series)]
    monkeypatch.setattr(report_figures, "MAX_VALUES", first + 1)
    figure = drawn(page.PAGE, "series", chain_studied(study))
    assert figure is not None and figure.selectors[0] == ("nat > firewall",)
    assert figure.title == "Sampled features over time (1 of 16 chains)"


def test_pictures_of_a_study_are_on_its_page_and_none_of_what_is_not_known(study: ChainStudy) -> None:
    ends = [figure.identity.rpartition("-")[2] for figure in made(page.PAGE, chain_studied(study)).figures]
    assert ends[:5] == ["chains", "volumes", "distances", "resources", "series"]
    bare = study.model_copy(update={"runs": (), "statistics": (), "suspects": ()})
    assert made(page.PAGE, chain_studied(bare)).figures == ()
    assert furthest(study)[-1] == FAULTY and furthest(study)[-2] == LOSSY
