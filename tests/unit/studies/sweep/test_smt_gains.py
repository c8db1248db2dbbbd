"""What SMT adds: from profiles of known capacities, in words, as a table, and refused where one is missing."""

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from resources.libraries.python.errors import ConfigError, CsitError, PlanError
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.result import Environment
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.studies.sweep.analysis.profile import profile_of
from resources.libraries.python.studies.sweep.analysis.sentences import title
from resources.libraries.python.studies.sweep.analysis.smt_gains import smt_gains
from resources.libraries.python.studies.sweep.analysis.tables import smt_rows
from resources.libraries.python.studies.sweep.model.profile import Profile, SmtEstimate, SmtGain
from resources.libraries.python.studies.sweep.model.record import SweepRecord
from resources.libraries.python.studies.sweep.run import ProfileStore, ServiceSweep
from resources.libraries.python.testbed.kinds.simulated_testbed import SimulatedTestbed
from tests.builders import NOWHERE, SIM
from tests.unit.csit_utils.characterization_records import FIREWALL, swept
from tests.unit.csit_utils.characterization_records import sweep_of as firewall_of
from tests.unit.planning.labs import lab
from tests.unit.studies.sweep.known_profiles import known_profile
from tests.unit.studies.sweep.synthetic_sweeps import growing_to, plain_router, sweep_of
from tests.unit.studies.worlds import ROUTER_SWEEP


def test_known_capacities_are_compared_without_intervals_where_these_are_unknown() -> None:
    break_point, throughput = smt_gains(known_profile("nf", 1.3), known_profile("nf", 1.0))
    assert (break_point.quantity, throughput.quantity) == ("break-point", "saturated throughput")
    for row in (break_point, throughput):
        assert row.gain.value == pytest.approx(0.3)
        assert (row.smt_on.value, row.smt_off.value) == (1.3, 1.0)
        assert (row.gain.low, row.gain.high, row.smt_on.low) == (None, None, None)


def test_a_quantity_that_one_of_both_lacks_is_left_out() -> None:
    assert smt_gains(known_profile("nf", None), known_profile("nf", 1.0)) == ()
    unfitted = known_profile("nf", 1.0)
    rows = tuple(row.model_copy(update={"sat": None}) for row in unfitted.metrics)
    (row,) = smt_gains(known_profile("nf", 1.3), unfitted.model_copy(update={"metrics": rows}))
    assert row.quantity == "break-point"


def measured(capacity: float, vcpus: int, noise: float = 0.002, seed: int = 0) -> Profile:
    """A profile that is fitted to loads with a little noise."""
    rates = np.linspace(0.1, 1.6, 16) * capacity
    threads = (growing_to(1.0, capacity),) * vcpus
    points = sweep_of(rates, plain_router(capacity), {"nf-1-1": threads}, noise=noise, seed=seed)
    return profile_of("nf", points, {"nf-1-1": vcpus})


def test_fitted_profiles_are_compared_with_intervals_around_the_truth() -> None:
    for row in smt_gains(measured(1.3, 2), measured(1.0, 1, seed=1)):
        assert row.gain.low < row.gain.value < row.gain.high
        assert row.gain.value == pytest.approx(0.3, abs=0.02)
        assert row.gain.high - row.gain.low < 0.1


def test_a_gain_is_a_row_of_percentages() -> None:
    gain = SmtGain(
        quantity="break-point",
        smt_on=SmtEstimate(value=0.26, low=0.25, high=0.27),
        smt_off=SmtEstimate(value=0.2, low=0.19, high=0.21),
        gain=SmtEstimate(value=0.3, low=0.224, high=0.381),
    )
    columns, row = smt_rows("nat", [gain])
    assert dict(zip(columns, row, strict=True)) == pytest.approx(
        {
            "service": "nat", "quantity": "break-point",
            "smt_on_gbps": 0.26, "smt_on_low_gbps": 0.25, "smt_on_high_gbps": 0.27,
            "smt_off_gbps": 0.2, "smt_off_low_gbps": 0.19, "smt_off_high_gbps": 0.21,
            "gain_percent": 30.0, "gain_low_percent": 22.4, "gain_high_percent": 38.1,
        }
    )  # fmt: skip


def store(*records: SweepRecord) -> ProfileStore:
    made = ProfileStore(World.LOCAL, "local")
    for record in records:
        made.put(record)
    return made


def firewall(smt: bool | None, capacity_pps: float = 2e5) -> SweepRecord:
    sweep = firewall_of("firewall", FIREWALL, capacity_pps=capacity_pps)
    return swept("Firewall", sweep, plan=make_plan(SIM, sweep.cell, {}, smt=smt), smt_off=smt is False)


def test_the_profile_with_smt_is_that_of_the_same_service_and_traffic() -> None:
    on, off = firewall(smt=None), firewall(smt=False, capacity_pps=1.5e5)
    assert on.sweep is not None and off.sweep is not None
    profiles = store(on, off)
    assert profiles.with_smt(off.sweep) == on.profile
    assert profiles.profile("firewall", "64B") == on.profile, "parts of chains are never those without SMT"
    other = off.sweep.model_copy(update={"spec": off.sweep.spec.model_copy(update={"flows": 2})})
    with pytest.raises(ConfigError) as refused:
        profiles.with_smt(other)
    assert str(refused.value).startswith(
        "firewall has not been measured with SMT and 64B frames on testbed local; measure it with smt=on first"
    )
    assert on.plan is not None
    cores = on.plan.cores.model_copy(update={"smt": False})
    bare = on.model_copy(update={"plan": on.plan.model_copy(update={"cores": cores})})
    with pytest.raises(ConfigError, match="has not been measured with SMT"):
        store(bare).with_smt(on.sweep)  # of a machine without SMT


def test_titles_and_records_say_that_smt_was_off() -> None:
    on, off = firewall(smt=True), firewall(smt=False)
    assert (title(on), title(off)) == ("firewall, 64B, 1c", "firewall, 64B, 1c, SMT off")
    assert "smt" not in "".join(key for key in on.model_dump(mode="json"))
    assert SweepRecord.model_validate_json(off.model_dump_json()).smt_off


def planned(
    smt: bool | None,
    kind: str = "linux_firewall",
    topology: Topology = SIM,
    world: Any = None,
    environment: Environment = NOWHERE,
) -> ServiceSweep:
    """A sweep with SMT, without it, or as the machine is."""
    asked = ROUTER_SWEEP.model_copy(
        update={"name": "firewall", "cell": firewall_of("firewall", (NfKind(kind),)).cell, "duration_s": 2, "smt": smt}
    )
    service = ServiceSweep(topology, world or SimulatedTestbed(SIM), asked, environment)
    service.plan()
    return service


def test_only_a_profiled_sweep_without_smt_is_compared() -> None:
    service = planned(smt=True)
    with pytest.raises(CsitError, match="nothing to compare: the service has no profile"):
        service.compare_smt(store())
    on = firewall(smt=None)
    service.draft.sweep, service.draft.profile = on.sweep, on.profile
    with pytest.raises(ConfigError, match="firewall was measured with SMT: compare the sweep that has smt=off"):
        service.compare_smt(store(on))
    without, off = planned(smt=False), firewall(smt=False, capacity_pps=1.5e5)
    without.draft.sweep, without.draft.profile = off.sweep, off.profile
    break_point, _ = without.compare_smt(store(on))
    assert break_point.gain.value == pytest.approx(1 / 3, abs=0.01)
    assert without.draft.smt_gains[0] == break_point


@pytest.mark.parametrize("state", ["off", "forceoff", "notsupported", "notimplemented", None])
def test_a_machine_whose_kernel_cannot_switch_it_is_refused_before_anything_starts(state: str | None) -> None:
    control = "/sys/devices/system/cpu/smt/control"
    unable = NOWHERE.model_copy(update={"settings": {} if state is None else {control: state}})
    able = NOWHERE.model_copy(update={"settings": {control: "on"}})
    in_lab = partial(
        planned, kind="vpp", topology=lab(2, smt=True), world=SimpleNamespace(layout={}, drivers={}, simulation=None)
    )
    says = f"{control} says {state}" if state else f"there is no {control}"
    for smt in (True, False):
        with pytest.raises(PlanError) as refused:
            in_lab(smt, environment=unable.model_copy(update={"nodes": {"DUT2": able}}))
        assert str(refused.value) == f"SMT on and off cannot be compared on DUT1: {says} there"
        with pytest.raises(PlanError, match="cannot be compared on DUT2"):
            in_lab(smt, environment=able.model_copy(update={"nodes": {"DUT2": unable}}))
    assert in_lab(smt=False, environment=able.model_copy(update={"nodes": {"DUT2": able}})).draft.smt_off
    assert not in_lab(smt=None, environment=unable).draft.smt_off


@pytest.mark.slow
def test_intervals_hold_the_truth() -> None:
    """Noise of 1 % in everything but the rate; see the methodology for what intervals of break-points hold."""
    held = {"break-point": 0, "saturated throughput": 0}
    rounds = 40
    for seed in range(rounds):
        for row in smt_gains(measured(1.3, 2, 0.01, seed), measured(1.0, 1, 0.01, 1000 + seed)):
            held[row.quantity] += row.gain.low <= 0.3 <= row.gain.high
    assert min(held.values()) >= 0.8 * rounds, held


def test_the_request_changes_no_digest_by_itself() -> None:
    """Runs that were begun before are resumed; what differs is in the plan."""
    usual, on, off = (planned(smt).digest() for smt in (None, True, False))
    assert usual == on != off
