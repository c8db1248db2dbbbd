"""A study from specification to record, and the share of network I/O, on simulated systems whose truth is known."""

from statistics import fmean
from typing import Any

import pytest

from resources.libraries.python.errors import CsitError, PlanError, SystemBroken, Unsupported
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.kinds import NfKind, UserProgram
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.studies.interference import model
from resources.libraries.python.studies.interference.analysis.findings import lowest
from resources.libraries.python.studies.interference.model import Contender, Interference, NfType
from resources.libraries.python.studies.interference.planning import cpu_share
from resources.libraries.python.testbed.deployment.cell import CellUnderTest, Deployment
from tests.unit.studies.interference.measurements import network_shares
from tests.unit.studies.interference.simulated_studies import SIM, measured, ran, spec, study_of
from tests.unit.studies.worlds import World


@pytest.fixture(scope="module")
def whole() -> Interference:
    return measured(spec(guarantee=True, repetitions=6))


@pytest.mark.slow
def test_repetitions_differ_and_a_study_repeats_itself(whole: Interference) -> None:
    alone = [each.throughput_pps for each in whole.measurements if each.target == "monitor" and not each.against]
    assert len(set(alone)) == 6
    few = spec("gateway", "proxy", repetitions=2)
    assert measured(few).measurements == measured(few).measurements


@pytest.mark.slow
def test_costs_and_response_time_are_reported_and_missing_ones_noted_once(whole: Interference) -> None:
    busy = [each.cpu for each in whole.measurements if each.target == "inspection"]
    assert all(cpu is not None and cpu > 1.5 for cpu in busy), "two data threads in overload"
    assert all(each.response_s for each in whole.measurements)
    assert [note for note in whole.notes if "cache" in note] == [
        "cache misses were not counted: the simulation has no caches"
    ]


@pytest.mark.slow
def test_of_the_papers_types_the_monitor_is_most_sensitive_and_the_proxy_most_aggressive(whole: Interference) -> None:
    assert [each.name for each in lowest(whole.findings.sensitivity)] == ["monitor"]
    assert [each.name for each in lowest(whole.findings.aggressiveness)] == ["proxy"]


def test_a_function_that_does_not_start_is_left_out_with_one_sentence_unless_it_is_the_only_one() -> None:
    study = ran(spec(repetitions=2, least_measured=0.6), World(topology=SIM, lacks={"pktstat"}))
    found = study.result()
    assert len(found.matrix) == 9 and found.coverage == (24, 40)
    assert [note for note in found.notes if "pktstat" in note] == ["monitor is left out: pktstat missing"]
    assert {name for server in found.advice[0].best.servers for name in server} == {"gateway", "inspection", "proxy"}
    study.enough()
    study.spec = study.spec.model_copy(update={"least_measured": 1.0})
    with pytest.raises(CsitError, match=r"^24 of 40 .* requires all.*16 x monitor did not start alone$"):
        study.enough()
    with pytest.raises(Unsupported, match=r"^monitor is left out: pktstat missing"):
        measured(spec("monitor"), World(topology=SIM, lacks={"pktstat"}))


def test_a_calibration_that_breaks_is_repeated() -> None:
    broken = SystemBroken("nf-1-1 was killed by SIGKILL")
    found = measured(spec(repetitions=2), World(topology=SIM, breaks={1}, error=broken))
    assert len(found.matrix) == 16
    assert not [note for note in found.notes if "left out" in note]


def with_kinds(*kinds: str) -> Topology:
    dut = SIM.dut.model_copy(update={"containers": tuple(map(NfKind, kinds)), "containers_on_request": False})
    return SIM.model_copy(update={"nodes": {**SIM.nodes, "DUT1": dut}})


def test_a_kind_that_a_testbed_lacks_is_refused_or_gets_its_stand_in_before_anything_starts() -> None:
    with pytest.raises(PlanError, match="ngrep"):
        study_of(spec("gateway", "inspection"), topology=with_kinds("sim", "linux_gateway")).plan()
    with pytest.raises(PlanError, match="cores"):
        study_of(spec("gateway", together=40)).plan()
    study = study_of(with_ids(ids()), topology=with_kinds("sim", "linux_gateway", "ngrep"))
    study.plan()
    assert study.spec.contenders[0].kind == "ngrep"
    with pytest.raises(ValueError, match="ids: an NF of kind process needs a program"):
        ids(stand_in=NfKind("process"))


def test_virtual_machines_that_the_testbed_lacks_are_refused_and_the_record_is_written() -> None:
    vm = Contender(name="vm", type=NfType.GATEWAY, kind=NfKind("qemu"))
    study = study_of(spec(contenders=(vm,)))
    with pytest.raises(PlanError, match="testbed sim has no NFs of kind qemu"):
        study.plan()
    assert study.remove() is None
    record = study.draft.finish(test_id="t", test_name="t", tags=(), passed=False, message="PlanError")
    assert record.model_dump_json()


def ids(**changes: object) -> Contender:
    row = {"name": "ids", "type": NfType.INSPECTION, "kind": NfKind("suricata"), "stand_in": NfKind("ngrep")}
    return Contender.model_validate({**row, **changes})


def with_ids(one: Contender) -> model.InterferenceSpec:
    return spec(repetitions=1, contenders=(one, *spec("gateway").contenders))


@pytest.mark.parametrize("own", [None, UserProgram(start=("my-ids",))])
def test_what_does_not_start_is_measured_by_its_stand_in_which_is_named(
    own: UserProgram | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = NfKind("process") if own else NfKind("suricata")
    real = CellUnderTest.deploy
    taken_away: list[object] = []

    def deploy(cell: CellUnderTest, plan: Plan) -> Deployment:
        if plan.functions[0].kind == kind:
            monkeypatch.setattr(cell, "remove", lambda: taken_away.append(kind))
            raise Unsupported("it is not installed")
        return real(cell, plan)

    monkeypatch.setattr(CellUnderTest, "deploy", deploy)
    found = measured(with_ids(ids(kind=kind, program=own)))
    stand_in = found.spec.contenders[0]
    assert (stand_in.kind, stand_in.program) == (NfKind("ngrep"), None)
    assert stand_in.stand_in_for == ("my-ids" if own else "suricata")
    assert {row.target for row in found.matrix} == {"ids", "gateway"}
    assert "ids is measured as ngrep: it is not installed" in found.notes
    assert taken_away == [kind], "what came to life of it is removed before its stand-in is deployed"


def test_a_program_of_the_users_own_goes_to_its_instances_only() -> None:
    own = UserProgram(start=("my-ids", "-i", "{left}"))
    study = study_of(with_ids(ids(kind=NfKind("process"), program=own, stand_in=None)))
    study.plan()
    company = study._server.plan(("ids", "gateway"))
    assert [function.program for function in company.functions] == [own, None]
    assert all(function.program is None for function in study._server.plan(("gateway", "gateway")).functions)


WITHIN = 0.03
"""By noise of 2 % in each of a few measurements."""


def simulated(rate_bps: int | None = 10_000_000_000, **simulation: object) -> Topology:
    """The simulated testbed with ports of another rate, or of none that is known."""
    tg = SIM.tg
    interfaces = {name: port.model_copy(update={"rate_bps": rate_bps}) for name, port in tg.interfaces.items()}
    nodes = {**SIM.nodes, "TG": tg.model_copy(update={"interfaces": interfaces})}
    return SIM.model_copy(update={"nodes": nodes, "simulation": {**(SIM.simulation or {}), **simulation}})


def guaranteed(topology: Topology, *names: str, **changes: Any) -> Interference:
    return ran(spec(*names, **{"guarantee": True, "repetitions": 3, **changes}), topology=topology).result()


@pytest.mark.slow
@pytest.mark.parametrize("truth", [0.0, 0.2, 0.4, 0.6])
def test_the_share_of_two_three_and_four_together_is_the_truth(truth: float) -> None:
    found = guaranteed(simulated(network_part=truth), "gateway", "proxy", "monitor", together=4, repetitions=2)
    assert network_shares(found) == {size: pytest.approx(truth, abs=WITHIN) for size in (2, 3, 4)}


def test_alone_nothing_is_limited_and_together_each_gets_its_part_of_the_line() -> None:
    line_pps = 10e9 / 8 / (512 + 20)
    for each in guaranteed(simulated(), "gateway", "monitor", together=3, repetitions=1).measurements:
        assert not each.guaranteed or each.against
        expected = pytest.approx(line_pps / (1 + len(each.against))) if each.guaranteed else None
        assert each.limit_pps == expected


def test_where_no_port_has_a_rate_each_gets_its_part_of_what_the_network_was_seen_to_carry() -> None:
    """That is seen with as many of the fastest as are together at most: three carry more than two."""

    def network_pps(together: int) -> set[float]:
        found = guaranteed(simulated(None), "gateway", "monitor", together=together, repetitions=1)
        limits = {(1 + len(each.against), each.limit_pps or 0.0) for each in found.measurements if each.guaranteed}
        assert [size for size, _ in sorted(limits)] == list(range(2, together + 1))
        return {round(size * limit_pps) for size, limit_pps in limits}

    (of_two,), (of_three,) = network_pps(2), network_pps(3)
    assert of_three > 1.3 * of_two


def test_a_line_that_leaves_less_than_one_carries_alone_takes_it_out_of_the_share() -> None:
    """400 kpps for each of two, where the gateway carries 471 kpps and all others less than 150 kpps."""
    line_bps = round(2 * 400e3 * 8 * (512 + 20))
    found = guaranteed(simulated(line_bps, network_part=0.4, line_rate_pps=10e6))
    assert network_shares(found) == {2: pytest.approx(0.4, abs=WITHIN)}
    gateway = [row.mean for row in found.guaranteed if row.target == "gateway" and row.against == ("gateway",)]
    assert gateway == [pytest.approx(400 / 471, abs=0.03)], "it is in the matrix all the same"
    assert [note for note in found.notes if "gateway is excluded" in note and "guaranteed 400 kpps" in note]
    found = guaranteed(simulated(100_000_000, line_rate_pps=10e6), "gateway", repetitions=1, load_pps=2e5)
    assert network_shares(found) == {}


@pytest.mark.slow
def test_the_share_of_cpu_time_is_the_truth_also_where_a_type_loses_more_with_the_guarantee() -> None:
    parts = {"linux_gateway": 0.2, "pktstat": 0.2, "ngrep": -0.3, "nginx_proxy": 0.2}
    found = guaranteed(simulated(network_part=0.4, cpu_part=parts), guarantee="network,cpu", repetitions=6)
    assert network_shares(found) == {2: pytest.approx(0.4, abs=WITHIN)}
    kinds = {each.name: each.kind for each in found.spec.contenders}
    by_pair = [each for each in found.findings.shares if each.target and each.resource is model.Resource.CPU]
    seen = {name: [each.share.value for each in by_pair if each.target == name and each.share] for name in kinds}
    for name, kind in kinds.items():
        assert len(seen[name]) >= 3
        assert fmean(seen[name]) == pytest.approx(parts[kind], abs=0.15)
    assert max(seen["inspection"]) < 0 < min(seen["proxy"])


def test_own_cores_are_all_guaranteed_and_shared_ones_in_equal_parts() -> None:
    found = guaranteed(simulated(), "gateway", "monitor", guarantee="cpu", repetitions=1)
    assert {each.limit_cpus for each in found.measurements if each.guaranteed} == {2.0}, "1c: two data threads"
    assert {each.limit_cpus for each in found.measurements if not each.guaranteed} == {None}
    plan = study_of(spec("gateway", "monitor"))._server.plan(("gateway", "monitor"))
    threads = tuple(each.model_copy(update={"cpu": 7}) for each in plan.cores.threads)
    assert cpu_share(plan) == 2.0
    shared = plan.model_copy(update={"cores": plan.cores.model_copy(update={"threads": threads})})
    assert cpu_share(shared) == 0.5 * len(set(shared.cores.cpus("nf-1-1")))
