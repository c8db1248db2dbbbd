"""Pages of studies of chains, of interference, of stateful density and of outages: what they say and draw."""

import json
import re
from itertools import permutations
from pathlib import Path
from statistics import fmean

import pytest
from pydantic import ValidationError

from csit_utils.cli import make_app
from csit_utils.dataset.items import Recorded, Status
from csit_utils.report import figures as report_figures
from csit_utils.studies.chains import study as chain_page
from csit_utils.studies.chains.plots import furthest
from csit_utils.studies.chains.state_graphs import rates_of
from csit_utils.studies.interference import study as interference
from csit_utils.studies.outage.study import STUDY as OUTAGE_STUDY
from csit_utils.studies.outage.study import SURVIVED
from csit_utils.studies.registry import record_kinds, views
from csit_utils.studies.stateful.study import STUDY
from resources.libraries.python.model.measurements.features import VSWITCH
from resources.libraries.python.model.record import Record
from resources.libraries.python.model.result import Rerun
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.studies.chains.analysis.prediction import DELAY, compare_parts
from resources.libraries.python.studies.chains.model import (
    ChainRun,
    ChainsRecord,
    ChainStudy,
    Excess,
    PartDelay,
    PartLoss,
    Statistic,
    Suspect,
)
from resources.libraries.python.studies.chains.model.spec import PATH, Chain
from resources.libraries.python.studies.interference.analysis.sentences import headline
from resources.libraries.python.studies.interference.analysis.study import analyse
from resources.libraries.python.studies.outage.model import CONTROL, Quarantined
from resources.libraries.python.studies.stateful.model import Phase, StatefulDensity
from tests.builders import cpus
from tests.unit.csit_utils.characterization_records import record
from tests.unit.csit_utils.characterized_pages import drawn, made, shown, words
from tests.unit.csit_utils.datasets import invoked
from tests.unit.csit_utils.outages import SPEC as OUTAGE_SPEC
from tests.unit.csit_utils.outages import outage, outage_record
from tests.unit.csit_utils.stateful_cells import NAT, SPEC, cell, stateful_record, trial
from tests.unit.csit_utils.study_records import FAULTY, LOSSY, TARGETS, chain_studied, chain_study, interfered
from tests.unit.csit_utils.study_records import interference as interference_of
from tests.unit.studies.chains.chain_runs import chain, graph, run, spec_of, workload
from tests.unit.studies.interference import measurements


@pytest.fixture(scope="module")
def study() -> ChainStudy:
    return chain_study()


def test_a_plot_has_the_first_suspect_on_top_and_of_many_chains_those_that_lose_most(study: ChainStudy) -> None:
    figure = drawn(chain_page.PAGE, "chains", chain_studied(study))
    order = figure.variants["throughput"]["layout"]["yaxis"]["categoryarray"]
    assert order[-1] == "nat &gt; firewall *" and "*" not in order[0]
    assert len(order) == 16 and "Every chain" in figure.title, "the one that failed is left out"
    lowest = figure.variants["throughput"]["data"][0]
    at = lowest["y"].index("nat &gt; firewall *")
    assert lowest["x"][at] == pytest.approx(33, abs=1) and "planted" in lowest["text"][at]
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


def test_pictures_of_a_study_are_on_its_page_and_none_of_what_is_not_known(study: ChainStudy) -> None:
    ends = [figure.identity.rpartition("-")[2] for figure in made(chain_page.PAGE, chain_studied(study)).figures]
    assert ends[:5] == ["chains", "volumes", "distances", "resources", "series"]
    assert furthest(study)[-2:] == [LOSSY, FAULTY]
    page = made(chain_page.PAGE, with_parts(study, runs=(), suspects=(), statistics=(), costs=()))
    assert page.figures == () and "too few chains to judge" in words(page) and "Workflow classes" not in words(page)


def test_of_many_runs_those_after_the_first_hundred_come_later_and_policies_are_code(study: ChainStudy) -> None:
    runs = tuple(each for each in study.runs if each.failed is None) * 3
    html = str(made(chain_page.PAGE, with_parts(study, runs=runs)).html)
    (table,) = re.findall(r'<table [^>]*id="(rows-chains-[^"]*)" data-total="(\d+)"', html)
    (held,) = re.findall(rf'<script type="text/plain" data-into="{table[0]}">(.*?)</script>', html, re.DOTALL)
    assert int(table[1]) == len(runs) == 100 + held.count("<tr>")
    assert "<code>ids &gt; proxy</code>" in html


def test_the_page_of_interference_has_placement_advice_and_the_share_of_network_io() -> None:
    page = made(interference.PAGE, interfered())
    text = words(page)
    assert interference_of().advice[0].sentence in text
    rows = interference_of().measurements
    alone_pps = fmean(each.throughput_pps for each in rows if (each.target, each.against) == ("monitor", ()))
    assert f"monitor gateway {alone_pps * 512 * 8 / 1e6:.0f} " in text, "Mbit/s, as in Table I of the paper"
    anchor = views(shown(interfered()).contents.characterizations)[0].anchor
    for place in ("monitor-balancer", "monitor-alone"):
        assert f'id="{anchor}-map-{place}"' in str(page.html)


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
    suite, chosen = "tests/characterization/chains.robot", {"SET": "duration_s=9"}
    rerun = Rerun(topology="topologies/sim.yaml", topology_digest="0" * 64, suite=suite, variables=chosen)
    text = words(made(chain_page.PAGE, chain_studied(study, rerun=rerun)))
    assert "-v SET:duration_s=9" in text and suite in text


(PAGE,) = STUDY.pages


def item(found: Record) -> Recorded[Record]:
    return Recorded(record=found, source="output.xml", status=Status.PASS, message="")


def test_a_trial_that_lost_packets_before_its_tables_is_none_of_them_and_cells_have_the_same_checks() -> None:
    lost = trial(Phase.CAPACITY, 5_000.0, 990, 1)
    assert not lost.lost_before_tables, "an entry is missing for packets that arrived"
    lost = lost.model_copy(update={"instances": (lost.instances[0].model_copy(update={"arrived": 990}),)})
    assert lost.lost_before_tables and not lost.model_copy(update={"evicted": 1}).lost_before_tables
    assert not trial(Phase.CAPACITY, 5_000.0, 1000, 1).lost_before_tables, "it is complete"
    one = cell(1)
    with pytest.raises(ValidationError):
        StatefulDensity(spec=NAT, cells=(one, one.model_copy(update={"checks": one.checks[1:]})))


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


def test_the_preview_lists_cells_and_a_summary() -> None:
    lines = [json.loads(line) for line in invoked("stateful", SPEC, "--format", "json").output.splitlines()]
    assert [line["object"] for line in lines] == ["cell", "cell", "cell", "summary"]
    assert (lines[-1]["cells"], lines[-1]["trials"]) == (3, 144)


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


def test_a_page_has_no_more_seconds_than_it_can_show(study: ChainStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    (first,) = [sum(len(one.values) for run in study.runs if run.chain == FAULTY for one in run.series)]
    monkeypatch.setattr(report_figures, "MAX_VALUES", first + 1)
    figure = drawn(chain_page.PAGE, "series", chain_studied(study))
    assert figure.selectors[0] == ("nat > firewall",)
    assert figure.title == "Sampled features over time (1 of 16 chains)"


BPS = 4e6
BOTH, NAT_ALONE, GATEWAY_ALONE = chain("nat", "gateway"), chain("nat"), chain("gateway")


def of(what: Chain, delays_us: dict[str, float], losses: dict[str, float]) -> ChainRun:
    """A run with delays and losses by part."""
    delays = [PartDelay(owner=own, mean_s=us * 1e-6, median_s=us * 1e-6, packets=9) for own, us in delays_us.items()]
    lost = [PartLoss(owner=own, cause="inside", ratio=ratio) for own, ratio in losses.items()]
    more = {"delays": tuple(delays), "losses": tuple(lost), "idle_latency_s": 1e-6 * sum(delays_us.values())}
    return run(what, BPS, BPS * (1 - sum(losses.values()))).model_copy(update=more)


def runs(nat_us: float) -> tuple[ChainRun, ...]:
    """All of a study in which nat takes as long as given in the chain."""
    return (
        of(PATH, {VSWITCH: 2.0}, {}),
        of(NAT_ALONE, {"nat": 10.0, VSWITCH: 5.0}, {}),
        of(GATEWAY_ALONE, {"gateway": 20.0, VSWITCH: 6.0}, {"gateway": 0.01}),
        of(BOTH, {"nat": nat_us, "gateway": 21.0, VSWITCH: 9.5}, {"nat": 0.2}),
    )


def study_of_parts(*repetitions: float) -> ChainStudy:
    """A study whose chain is a suspect; repeated where there is more than one delay of nat."""
    excess = Excess(
        chain=BOTH, owner="nat", workload=workload(BPS), feature=DELAY, measured=4e-5, expected=1e-5,
        excess=3e-5, low=2e-5, high=4e-5, least=1e-5, runs=1,
    )  # fmt: skip
    first, *more = map(runs, repetitions)
    return ChainStudy(
        spec=spec_of(("nat", "gateway"), volumes_bps=(BPS,)),
        chains=3,
        path=first[:1],
        runs=first[1:],
        repeated=tuple(each for again in more for each in again if each.chain != PATH),
        suspects=(Suspect(chain=BOTH, mean_distance=1.0, threshold=0.5, distances=(), worse=(excess,)),),
    )


def test_each_part_has_a_bar_for_what_was_measured_with_an_interval_of_repeated_runs_and_for_the_prediction() -> None:
    figure = drawn(chain_page.PAGE, "parts", chain_studied(study_of_parts(40.0)))
    assert figure.selectors == (("1. nat > gateway",), ("delay without load", "loss"))
    measured, predicted = figure.variants["1. nat > gateway|delay without load"]["data"]
    assert measured["x"] == predicted["x"] == ["nat", "gateway", "vswitch"], "in the order of the chain"
    assert measured["y"] == pytest.approx([40.0, 21.0, 9.5])
    assert predicted["y"] == pytest.approx([10.0, 20.0, 5.0 + 6.0 - 2.0]), "the vSwitch less the path"
    assert "error_y" not in measured, "the spread of single runs is not known"
    lost, foreseen = figure.variants["1. nat > gateway|loss"]["data"]
    assert lost["y"] == pytest.approx([20.0, 0.0, 0.0])
    assert foreseen["y"] == pytest.approx([0.0, 1.0, 0.0])
    again = study_of_parts(90.0, 39.0, 40.0, 41.0)
    figure = drawn(chain_page.PAGE, "parts", chain_studied(again))
    measured, predicted = figure.variants["1. nat > gateway|delay without load"]["data"]
    assert measured["y"][0] == pytest.approx(40.0), "the first run, by which it was chosen, does not decide"
    (rows,) = compare_parts((*again.path, *again.runs, *again.repeated), {(BOTH, workload(BPS))}).values()
    half = next(row.half for row in rows if (row.owner, row.feature) == ("nat", DELAY))
    assert half is not None and half > 0
    assert measured["error_y"]["array"][0] == pytest.approx(1e6 * half)
    assert "error_y" not in predicted


(OUTAGE_PAGE,), LOCAL = OUTAGE_STUDY.pages, PROJECT / "topologies" / "local.yaml"


def test_events_stand_beside_the_trials_without_one_and_quarantined_trials_are_counted() -> None:
    found = outage(50)
    left_out = tuple(Quarantined(trial=number, reason="repetition 1: instance 2 lost 3.0 %") for number in (0, 1))
    noisy = record("outage", "Routers", outage=found.model_copy(update={"quarantined": left_out}))
    text = words(made(OUTAGE_PAGE, noisy))
    assert "2 of 6 trials are quarantined, because the host lost packets without the event" in text
    assert "without the event: repetition 1: instance 2 lost 3.0 % (2)" in text
    assert "no event kill" not in text and "restart nf-1-1" in text, "events have their names in the map"
    (row,) = [each for each in found.effects if (each.event, each.instance) == ("restart nf-1-1", 2)]
    assert row.control == next(each.lost for each in found.effects if (each.event, each.instance) == (CONTROL, 2))
    assert row.excess is not None and row.excess.mean == row.lost.mean - row.control.mean


def test_collateral_beyond_the_interval_and_the_share_that_arrives_are_told() -> None:
    for lost, said in (
        (0, "no event at one instance costs another one more packets than chance does"),
        (50, "restart nf-1-1 costs instance 2 50 packets"),
    ):
        assert any(each.is_significant for each in outage(lost).effects if not each.is_target) is bool(lost)
        assert record_kinds()["outage"].view(item(outage_record(lost)), 0).headline.startswith(said)
    rows = list(record_kinds()["outage"].rows_of(item(outage_record(50))))
    assert len(rows) == 4, "two events of two instances"
    (hit,) = (row for row in rows if row.service_type == "routers: instance 1, restart nf-1-1")
    # 1001 of 80,000 packets were lost: 20 kpps both ways, for two seconds from the event on.
    (found,) = hit.measures
    assert found.measure is SURVIVED and found.value == pytest.approx(1 - 1001 / 80_000)
    assert found.highest is not None and found.lowest < found.value < found.highest


def previewed(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[str, str]:
    """What the command prints, as output and as error."""
    make_app(["outage"])(["outage", *map(str, words)], standalone_mode=False)
    return capsys.readouterr()


def test_the_preview_has_trials_and_what_a_driver_lacks(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "35 trials of 3 s at 30% of NDR, control trials included" in previewed(capsys, OUTAGE_SPEC)[0]
    rows = map(json.loads, previewed(capsys, OUTAGE_SPEC, "--list", "--format", "json")[0].splitlines())
    assert [row["number"] for row in rows] == list(range(35))
    summary = json.loads(previewed(capsys, OUTAGE_SPEC, "--format", "json")[0].splitlines()[-1])
    assert (summary["trials"], summary["study"]) == (35, "routers")
    path = tmp_path / "spec.yaml"
    text = OUTAGE_SPEC.read_text(encoding="utf-8").replace("{event: move, target: nf", "{event: reload, target: nf")
    path.write_text(text.replace("event: restart, target: vswitch", "event: reload, target: vswitch"), encoding="utf-8")
    said, _ = previewed(capsys, path)
    assert "reload is not possible for nf-1-1: linux_router supports kill, restart, pause, add, move." in said
    assert "30 trials" in said, "whether a vSwitch has rules depends on the testbed"
    said, _ = previewed(capsys, path, "--topology", LOCAL)
    assert "reload is not possible for vswitch: linux_bridge supports kill, restart, pause, move." in said
    assert "25 trials" in said


def test_the_preview_lists_events_that_the_plan_leaves_no_cpu_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("csit_utils.studies.outage.outage_command.layout_of", lambda _: cpus(1))
    reason = "move is not possible for nf-1-1: the data threads of nf-1-1 are on CPU 0, and the plan has no other CPU"
    for options in ([], ["--list"], ["--format", "json"], ["--list", "--format", "json"]):
        out, err = previewed(capsys, OUTAGE_SPEC, "-t", LOCAL, *options)
        assert reason in (err if "--format" in options else out)
        assert "--list" not in options or ("\tmove nf-1-1" not in out and '"move nf-1-1"' not in out)
