"""A study of interference from specification to record, on simulated systems whose truth is known."""

from itertools import product

import pytest

from resources.libraries.python.drivers.sim.simulation import simulation_of
from resources.libraries.python.drivers.sim.truth import SimulatedTruth
from resources.libraries.python.errors import CsitError, PlanError, SystemBroken, Unsupported
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.function import UserProgram
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.studies.interference.analysis.findings import lowest
from resources.libraries.python.studies.interference.analysis.study import colocated
from resources.libraries.python.studies.interference.analysis.tables import by_frame_and_load
from resources.libraries.python.studies.interference.model.record import (
    Contender,
    Interference,
    InterferenceSpec,
    NfType,
)
from resources.libraries.python.studies.interference.planning import schedule
from resources.libraries.python.testbed.deployment.cell import CellUnderTest, Deployment
from tests.unit.studies.interference.simulated_studies import KINDS, NOISE, SIM, measured, spec, study_of
from tests.unit.studies.worlds import World


def truth(asked: InterferenceSpec) -> dict[tuple[str, tuple[str, ...]], float]:
    """What each company leaves to its target, by the simulation."""
    study = study_of(asked)

    def pps(*company: str) -> float:
        return SimulatedTruth(study._server.plan(company), simulation_of(SIM)).capacity_pps(asked.frame, (1,))

    return {(one, against): pps(one, *against) / pps(one) for one, against in
            {(turn.target, turn.against) for turn in schedule(asked)} if against}  # fmt: skip


def best_placement(matrix: dict[tuple[str, tuple[str, ...]], float], names: list[str]) -> float:
    """By trying all: the largest sum over two servers."""

    def on_one(server: list[str]) -> float:
        total = 0.0
        for name in server:
            left = 1.0
            for other in server:
                left *= matrix[name, (other,)] if other != name else 1.0
            total += left
        return total

    found = []
    for places in product((0, 1), repeat=len(names)):
        servers = [[name for name, at in zip(names, places, strict=True) if at == which] for which in (0, 1)]
        found.append(sum(map(on_one, servers)))
    return max(found)


@pytest.fixture(scope="module")
def whole() -> Interference:
    return measured(spec(guarantee=True, repetitions=6))


@pytest.mark.slow
def test_the_matrix_is_the_truth_within_its_noise(whole: Interference) -> None:
    known = truth(spec())
    assert len(whole.matrix) == 16
    inside = 0
    for row in whole.matrix:
        true = known[row.target, row.against]
        assert row.mean == pytest.approx(true, abs=3 * NOISE * (2 / row.samples) ** 0.5)
        inside += row.low <= true <= row.high
        assert 0 < row.mean < 1.2
    assert inside >= 12, "of 16 intervals of 95 %"


@pytest.mark.slow
def test_repetitions_differ_by_the_noise_and_a_study_repeats_itself(whole: Interference) -> None:
    alone = [each.throughput_pps for each in whole.measurements if each.target == "monitor" and not each.against]
    assert len(set(alone)) == 6
    few = spec("gateway", "proxy", repetitions=2)
    assert measured(few).measurements == measured(few).measurements


@pytest.mark.slow
def test_sensitivity_and_aggressiveness_are_in_the_order_of_the_truth(whole: Interference) -> None:
    known = truth(spec())
    rows = {name: sum(known[name, (other,)] for other in KINDS) for name in KINDS}
    columns = {name: sum(known[other, (name,)] for other in KINDS) for name in KINDS}
    assert sorted(whole.sensitivity, key=whole.sensitivity.__getitem__) == sorted(rows, key=rows.__getitem__)
    assert sorted(whole.aggressiveness, key=whole.aggressiveness.__getitem__) == sorted(
        columns, key=columns.__getitem__
    )


@pytest.mark.slow
def test_the_advice_is_as_good_as_the_best_of_all_placements_by_the_truth(whole: Interference) -> None:
    known = truth(spec())
    (advice,) = whole.advice
    by_truth = 0.0
    for names in advice.best.servers:
        for name in names:
            left = 1.0
            for other in names:
                left *= known[name, (other,)] if other != name else 1.0
            by_truth += left
    assert by_truth == pytest.approx(best_placement(known, list(KINDS)))
    assert advice.best.capacity == pytest.approx(by_truth, abs=0.1)


@pytest.mark.slow
def test_costs_and_response_time_are_reported_and_missing_ones_noted_once(whole: Interference) -> None:
    busy = [each.cpu for each in whole.measurements if each.target == "inspection"]
    assert all(cpu is not None and cpu > 1.5 for cpu in busy), "two data threads in overload"
    assert all(each.response_s for each in whole.measurements)
    assert [note for note in whole.notes if "cache" in note] == [
        "cache misses were not counted: the simulation has no caches"
    ]


def test_three_at_once_are_what_the_simulation_says_and_not_what_pairs_predict() -> None:
    found = measured(spec("gateway", "proxy", together=3, repetitions=4))
    assert {len(row.against) for row in found.matrix} == {1, 2}
    known = truth(spec("gateway", "proxy", together=3))
    for row in found.matrix:
        assert row.mean == pytest.approx(known[row.target, row.against], abs=0.06)
    off = colocated(found).prediction_error
    assert off is not None and off > 0.01


@pytest.mark.slow
def test_of_the_types_of_the_paper_the_monitor_is_most_sensitive_and_the_proxy_most_aggressive(
    whole: Interference,
) -> None:
    assert [each.name for each in lowest(whole.findings.sensitivity)] == ["monitor"]
    assert [each.name for each in lowest(whole.findings.aggressiveness)] == ["proxy"]


def test_frames_and_loads_make_a_table_of_points() -> None:
    """At a low load nobody is missing anything."""
    few = [measured(spec("gateway", "monitor", repetitions=2, load_pps=load, frame=frame(size)))
           for size in ("64B", "512B") for load in (5e3, 2e5)]  # fmt: skip
    points = by_frame_and_load(few)
    assert [(point.frame.name, point.load_pps) for point in points] == [
        ("64B", 5e3), ("64B", 2e5), ("512B", 5e3), ("512B", 2e5),
    ]  # fmt: skip
    first, second = (point.findings for point in points[:2])
    assert first.degradation.value == pytest.approx(0, abs=0.01)
    assert second.degradation.value > 0.02


def test_a_function_that_does_not_start_is_left_out_with_one_sentence_and_all_others_are_measured() -> None:
    found = measured(spec(repetitions=2), World(topology=SIM, lacks={"pktstat"}))
    assert len(found.matrix) == 9
    assert [note for note in found.notes if "pktstat" in note] == ["monitor is left out: pktstat missing"]
    assert sorted(name for server in found.advice[0].best.servers for name in server) == [
        "gateway", "inspection", "proxy",
    ]  # fmt: skip


def test_a_calibration_that_breaks_is_repeated() -> None:
    found = measured(
        spec(repetitions=2), World(topology=SIM, breaks={1}, error=SystemBroken("nf-1-1 was killed by SIGKILL"))
    )
    assert len(found.matrix) == 16
    assert not [note for note in found.notes if "left out" in note]


def test_a_study_that_measured_less_than_asked_fails_and_says_how_much_and_why() -> None:
    study = study_of(spec(repetitions=2), World(topology=SIM, lacks={"pktstat"}))
    study.plan()
    study.run()
    with pytest.raises(CsitError, match=r"^24 of 40 measurements were made, the specification requires all"):
        study.enough()
    with pytest.raises(CsitError, match=r"16 x monitor did not start alone$"):
        study.enough()
    lower = study_of(spec(repetitions=2, least_measured=0.6), World(topology=SIM, lacks={"pktstat"}))
    lower.plan()
    lower.run()
    lower.enough()
    assert lower.result().coverage == (24, 40)


def test_where_none_starts_there_is_nothing_to_measure() -> None:
    with pytest.raises(Unsupported, match=r"^monitor is left out: pktstat missing"):
        measured(spec("monitor"), World(topology=SIM, lacks={"pktstat"}))


def test_a_kind_that_a_testbed_lacks_and_too_many_are_refused_before_anything_starts() -> None:
    dut = SIM.nodes["DUT1"].model_copy(
        update={"containers": (NfKind("sim"), NfKind("linux_gateway")), "containers_on_request": False}
    )
    poor = SIM.model_copy(update={"nodes": {**SIM.nodes, "DUT1": dut}})
    with pytest.raises(PlanError, match="ngrep"):
        study_of(spec("gateway", "inspection"), topology=poor).plan()
    with pytest.raises(PlanError, match="cores"):
        study_of(spec("gateway", together=40)).plan()


@pytest.mark.parametrize("others", [(), ("gateway",)])
def test_virtual_machines_that_the_testbed_lacks_are_refused_and_the_record_is_written(others: tuple[str, ...]) -> None:
    vm = Contender(name="vm", type=NfType.GATEWAY, kind=NfKind("qemu"))
    asked = spec(*(others or ("gateway",)))
    asked = asked.model_copy(update={"contenders": (*(asked.contenders if others else ()), vm)})
    study = study_of(asked)
    with pytest.raises(PlanError, match="testbed sim has no NFs of kind qemu"):
        study.plan()
    assert study.remove() is None
    record = study.draft.finish(test_id="t", test_name="t", tags=(), passed=False, message="PlanError")
    assert record.model_dump_json()


def ids(**changes: object) -> Contender:
    row = {"name": "ids", "type": NfType.INSPECTION, "kind": NfKind("suricata"), "stand_in": NfKind("ngrep")}
    return Contender.model_validate({**row, **changes})


def with_ids(one: Contender) -> InterferenceSpec:
    return spec(repetitions=1).model_copy(update={"contenders": (one, *spec("gateway").contenders)})


def test_what_is_there_needs_no_stand_in() -> None:
    found = measured(with_ids(ids()))
    assert (found.spec.contenders[0].kind, found.spec.contenders[0].stand_in_for) == (NfKind("suricata"), None)


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
    study = study_of(with_ids(ids(kind=kind, program=own)))
    study.plan()
    study.run()
    found = study.result()
    stand_in = found.spec.contenders[0]
    assert (stand_in.kind, stand_in.program) == (NfKind("ngrep"), None)
    assert stand_in.stand_in_for == ("my-ids" if own else "suricata")
    assert {row.target for row in found.matrix} == {"ids", "gateway"}
    assert "ids is measured as ngrep: it is not installed" in found.notes
    assert taken_away == [kind], "what came to life of it is removed before its stand-in is deployed"
    assert set(study.draft.plan.cell.instance_kinds) == {NfKind("ngrep")}


def test_a_testbed_without_a_kind_gets_the_stand_in_before_anything_starts() -> None:
    kinds = (NfKind("sim"), NfKind("linux_gateway"), NfKind("ngrep"))
    dut = SIM.nodes["DUT1"].model_copy(update={"containers": kinds, "containers_on_request": False})
    study = study_of(with_ids(ids()), topology=SIM.model_copy(update={"nodes": {**SIM.nodes, "DUT1": dut}}))
    study.plan()
    assert study.spec.contenders[0].kind == "ngrep"


def test_a_stand_in_needs_no_program_of_its_own() -> None:
    with pytest.raises(ValueError, match="ids: an NF of kind process needs a program"):
        ids(stand_in=NfKind("process"))


def test_a_program_of_the_users_own_goes_to_its_instances_only() -> None:
    own = UserProgram(start=("my-ids", "-i", "{left}"))
    one = Contender(name="ids", type=NfType.INSPECTION, kind=NfKind("process"), program=own)
    both = (*spec("gateway").contenders, one)
    study = study_of(spec(repetitions=1).model_copy(update={"contenders": both}))
    study.plan()
    company = study._server.plan(("ids", "gateway"))
    assert [function.program for function in company.functions] == [own, None]
    assert all(function.program is None for function in study._server.plan(("gateway", "gateway")).functions)
