"""The share of network I/O from specification to record, on simulated systems whose share is known."""

from statistics import fmean
from typing import Any

import pytest

from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.studies.interference.model.record import Interference, Resource
from resources.libraries.python.studies.interference.planning import cpu_share
from tests.unit.studies.interference.simulated_studies import SIM, spec, study_of

WITHIN = 0.03
"""By noise of 2 % in each of a few measurements."""


def simulated(rate_bps: int | None = 10_000_000_000, **simulation: object) -> Topology:
    """The simulated testbed with ports of another rate, or of none that is known."""
    tg = SIM.tg
    interfaces = {name: port.model_copy(update={"rate_bps": rate_bps}) for name, port in tg.interfaces.items()}
    nodes = {**SIM.nodes, "TG": tg.model_copy(update={"interfaces": interfaces})}
    return SIM.model_copy(update={"nodes": nodes, "simulation": {**(SIM.simulation or {}), **simulation}})


def measured(topology: Topology, *names: str, **changes: Any) -> Interference:
    study = study_of(spec(*names, **{"guarantee": True, "repetitions": 3, **changes}), topology=topology)
    study.plan()
    study.run()
    return study.result()


@pytest.mark.slow
@pytest.mark.parametrize("truth", [0.0, 0.2, 0.4, 0.6])
def test_the_share_of_pairs_is_the_truth(truth: float) -> None:
    found = measured(simulated(network_part=truth))
    assert found.network_share == pytest.approx(truth, abs=WITHIN)
    assert found.network_shares == {}, "there are only pairs"


@pytest.mark.slow
@pytest.mark.parametrize("truth", [0.0, 0.2, 0.4, 0.6])
def test_the_share_of_two_three_and_four_together_is_the_truth(truth: float) -> None:
    found = measured(simulated(network_part=truth), "gateway", "proxy", "monitor", together=4, repetitions=2)
    assert found.network_shares == {size: pytest.approx(truth, abs=WITHIN) for size in (2, 3, 4)}
    assert found.network_share == found.network_shares[2]


def test_alone_nothing_is_limited_and_together_each_gets_its_part_of_the_line() -> None:
    found = measured(simulated(), "gateway", "monitor", together=3, repetitions=1)
    assert {each.limit_pps for each in found.measurements if not each.against} == {None}
    assert not [each for each in found.measurements if each.guaranteed and not each.against]
    line_pps = 10e9 / 8 / (512 + 20)
    for each in found.measurements:
        if each.guaranteed:
            assert each.limit_pps == pytest.approx(line_pps / (1 + len(each.against)))


def test_where_no_port_has_a_rate_each_gets_its_part_of_what_the_network_was_seen_to_carry() -> None:
    """That is seen with as many of the fastest as are together at most: three carry more than two."""

    def network_pps(together: int) -> set[float]:
        found = measured(simulated(None), "gateway", "monitor", together=together, repetitions=1)
        limits = {(1 + len(each.against), each.limit_pps or 0.0) for each in found.measurements if each.guaranteed}
        assert [size for size, _ in sorted(limits)] == list(range(2, together + 1))
        return {round(size * limit_pps) for size, limit_pps in limits}

    (of_two,), (of_three,) = network_pps(2), network_pps(3)
    assert of_three > 1.3 * of_two


@pytest.mark.slow
@pytest.mark.parametrize("truth", [0.0, 0.5])
def test_where_no_port_has_a_rate_the_network_carries_what_it_was_seen_to_carry(truth: float) -> None:
    found = measured(simulated(None, network_part=truth), repetitions=6)
    assert found.network_share == pytest.approx(truth, abs=WITHIN)
    (note,) = (note for note in found.notes if "share of network I/O" in note)
    assert note.startswith("gateway is excluded from the share of network I/O of 2 co-located NFs: it has ")


def test_a_line_that_leaves_less_than_one_carries_alone_takes_it_out_of_the_share() -> None:
    """400 kpps for each of two, where the gateway carries 471 kpps and all others less than 150 kpps."""
    line_bps = round(2 * 400e3 * 8 * (512 + 20))
    found = measured(simulated(line_bps, network_part=0.4, line_rate_pps=10e6))
    assert found.network_share == pytest.approx(0.4, abs=WITHIN)
    gateway = [row.mean for row in found.guaranteed if row.target == "gateway" and row.against == ("gateway",)]
    assert gateway == [pytest.approx(400 / 471, abs=0.03)], "it is in the matrix all the same"
    assert [note for note in found.notes if "gateway is excluded" in note and "guaranteed 400 kpps" in note]


def test_where_each_is_slower_alone_than_guaranteed_there_is_no_share() -> None:
    found = measured(simulated(100_000_000, line_rate_pps=10e6), "gateway", repetitions=1, load_pps=2e5)
    assert found.network_share is None


@pytest.mark.slow
def test_the_share_of_cpu_time_is_the_truth_also_where_a_type_loses_more_with_the_guarantee() -> None:
    parts = {"linux_gateway": 0.2, "pktstat": 0.2, "ngrep": -0.3, "nginx_proxy": 0.2}
    found = measured(simulated(network_part=0.4, cpu_part=parts), guarantee="network,cpu", repetitions=6)
    assert found.network_share == pytest.approx(0.4, abs=WITHIN)
    kinds = {each.name: each.kind for each in found.spec.contenders}
    by_pair = [each for each in found.findings.shares if each.target and each.resource is Resource.CPU]
    seen = {name: [each.share.value for each in by_pair if each.target == name and each.share] for name in kinds}
    for name, kind in kinds.items():
        assert len(seen[name]) >= 3
        assert fmean(seen[name]) == pytest.approx(parts[kind], abs=0.15)
    assert max(seen["inspection"]) < 0 < min(seen["proxy"])


def test_own_cores_are_all_guaranteed_and_shared_ones_in_equal_parts() -> None:
    found = measured(simulated(), "gateway", "monitor", guarantee="cpu", repetitions=1)
    assert {each.limit_cpus for each in found.measurements if each.guaranteed} == {2.0}, "1c: two data threads"
    assert {each.limit_cpus for each in found.measurements if not each.guaranteed} == {None}
    plan = study_of(spec("gateway", "monitor"))._server.plan(("gateway", "monitor"))
    threads = tuple(
        each.model_copy(update={"cpu": 7}) if each.owner in {"nf-1-1", "nf-2-1"} else each
        for each in plan.cores.threads
    )
    assert cpu_share(plan) == 2.0
    shared = plan.model_copy(update={"cores": plan.cores.model_copy(update={"threads": threads})})
    assert cpu_share(shared) == 0.5 * len(set(shared.cores.cpus("nf-1-1")))
