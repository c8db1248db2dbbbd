"""Parameters of a simulated testbed are validated, and default to its ports."""

import re
from math import inf
from random import Random

import pytest

from resources.libraries.python.drivers.sim.clock import VirtualClock
from resources.libraries.python.drivers.sim.power import DataCpus, Power, SimulatedPower, cpu_use
from resources.libraries.python.drivers.sim.probes import SimMeters
from resources.libraries.python.drivers.sim.simulation import ModelName, parse_simulation, simulation_of
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.search.energy import certain_window, node_powers
from resources.libraries.python.search.findings.usage import busy_cpus
from tests.builders import plan_of, shipped
from tests.unit.drivers.sim.sim_bed import TOPOLOGY, Bed

SIM = shipped("sim")


def test_the_shipped_topology_is_10ge() -> None:
    simulation = simulation_of(SIM)
    assert simulation.model is ModelName.NOISY
    assert simulation.line_rate_pps == pytest.approx(14_880_952, abs=1)


def test_ports_give_the_line_rate_unless_parameters_do() -> None:
    faster = SIM.tg.model_copy(
        update={
            "interfaces": {
                name: port.model_copy(update={"rate_bps": 25_000_000_000}) for name, port in SIM.tg.interfaces.items()
            }
        }
    )
    topology = SIM.model_copy(update={"nodes": {**SIM.nodes, "TG": faster}})
    assert simulation_of(topology).line_rate_pps == pytest.approx(37.2e6, rel=0.001)
    said = topology.model_copy(update={"simulation": {"line_rate_pps": 1e6}})
    assert simulation_of(said).line_rate_pps == 1e6


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"nois": 0.1}, r"^simulation\.nois: unknown key; did you mean 'noise'\?$"),
        ({"xyzzy": 0.1}, r"^simulation\.xyzzy: unknown key$"),
        ({"model": "blunt"}, r"^simulation\.model: .*sharp.*sag"),
        ({"noise": 1.5, "knee": 2}, r"^simulation\.noise: 1.5 is not below 1 \(and 1 more\)$"),
        ({"low_band_share": 0.6}, r"^simulation\.low_band_share"),
        ({"limited_by": "nf-2"}, r"^simulation\.limited_by: 'nf-2' is no vSwitch and no NF"),
        ({"drop_at": ["csn1x1i2", "nf2-1"]}, r"^simulation\.drop_at\.1: 'nf2-1' is no vSwitch and no NF"),
        ({"seed": "one"}, r"^simulation\.seed"),
    ],
)
def test_a_wrong_parameter_is_named(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_simulation(parameters)


def test_virtual_time_advances_only_on_request() -> None:
    clock = VirtualClock()
    assert clock.now() == 0.0
    clock.advance(61.5)
    assert clock.now() == 61.5
    assert clock.timestamp() == "2000-01-01T00:01:01.500+00:00"
    with pytest.raises(ValueError, match="cannot advance"):
        clock.advance(-1.0)


@pytest.mark.parametrize("number", [inf, 1e308, 10**24, "1e308"])
@pytest.mark.parametrize(
    ("name", "inner"),
    [
        ("capacity_scale", ""), ("line_rate_pps", ""), ("overhead_s", ""), ("stall_packets", ""), ("sag", ""),
        ("interruptions", "restart_s"), ("generator", "loss_free_pps"), ("scales_to", "linux_nat"),
    ],
)  # fmt: skip
def test_no_parameter_is_endless(name: str, inner: str, number: object) -> None:
    path = f"simulation.{name}{inner and f'.{inner}'}"
    with pytest.raises(ConfigError, match=f"^{re.escape(path)}: [^\n]*$"):
        parse_simulation({name: {inner: number} if inner else number})
    assert parse_simulation({"seed": 10**24}).seed == 10**24


PACKET_S = 1e-7
POLLING = Power(platform_w=80.0)
SLEEPING = Power(platform_w=80.0, sleep_us=100.0)


def metered(power: Power, utilization: float, seconds: float = 10.0) -> tuple[float, float]:
    """Watts and their uncertainty, as a meter finds them on a machine with 2 data CPUs."""
    machine = SimulatedPower(power, VirtualClock(), "seed")
    machine.spend(0.0, seconds, {"vswitch": DataCpus(2, utilization, PACKET_S)})
    (node,) = node_powers(machine.read("DUT1", 0.0, seconds).series)
    return node.watts, node.error_w


@pytest.mark.parametrize("utilization", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_a_polling_cpu_takes_nearly_the_same_power_at_any_load(utilization: float) -> None:
    watts, error_w = metered(POLLING, utilization)
    truth = 80.0 + 2 * (utilization * POLLING.busy_w + (1 - utilization) * POLLING.polling_w)
    assert watts == pytest.approx(truth, abs=error_w + 0.02 * (POLLING.busy_w - POLLING.polling_w) * 2)


def test_a_sleeping_cpu_takes_less_and_pays_for_each_waking_up() -> None:
    watts, error_w = metered(SLEEPING, 0.0)
    truth = 80.0 + 2 * (SLEEPING.sleeping_w + SLEEPING.wake_uj / SLEEPING.sleep_us)
    assert watts == pytest.approx(truth, abs=error_w + 1e-3)
    assert metered(SLEEPING, 0.9)[0] < metered(POLLING, 0.9)[0]
    free = SLEEPING.model_copy(update={"wake_uj": 0.0})
    assert metered(free, 0.5)[0] < metered(SLEEPING, 0.5)[0]


def test_the_counter_starts_again_within_each_measurement() -> None:
    machine = SimulatedPower(POLLING, VirtualClock(), "seed")
    machine.spend(0.0, 10.0, {})
    (series,) = machine.read("DUT1", 0.0, 10.0).series
    values = [value for _, value in series.samples]
    assert max(values) < POLLING.range_j and sorted(values) != values
    assert metered(POLLING, 0.0)[0] == pytest.approx(90.0, abs=0.02)


def test_a_machine_without_platform_power_has_no_meter() -> None:
    found = SimulatedPower(Power(), VirtualClock(), "seed").read("DUT1", 0.0, 1.0)
    assert not found.series and "no energy meter" in found.unmetered["DUT1"]


def test_packets_wait_for_the_end_of_a_sleep() -> None:
    use = cpu_use(SLEEPING, 0.01, PACKET_S, Random(1))
    waits = [use.wait_s(Random(seed)) for seed in range(2000)]
    assert max(waits) <= SLEEPING.sleep_us * 1e-6
    assert sum(waits) / len(waits) == pytest.approx((1 - use.awake) * use.sleep_s / 2, rel=0.1)
    assert cpu_use(POLLING, 0.01, PACKET_S, Random(1)).wait_s(Random(1)) == 0.0


@pytest.mark.parametrize(("sleep_us", "busy"), [(0.0, 4.0), (100.0, 0.0)])
def test_polling_data_cpus_are_busy_without_traffic(sleep_us: float, busy: float) -> None:
    bed = Bed(plan_of("sim", "CSC", cores=TOPOLOGY.dut.layout), power={"platform_w": 80.0, "sleep_us": sleep_us})
    meters = SimMeters("DUT1", bed.system.simulation.power, lambda: bed.system)
    before = bed.system.sample()
    meters.begin(10.0)
    (node,) = node_powers(meters.end().series)
    cpus = [cpu for owner in ("vswitch", "nf-1-1") for cpu in bed.plan.cores.cpus(owner)]
    assert busy_cpus(cpus, before, bed.system.sample(), 10.0) == pytest.approx(busy)
    each_w = POLLING.polling_w if not sleep_us else SLEEPING.sleeping_w + SLEEPING.wake_uj / SLEEPING.sleep_us
    assert node.watts == pytest.approx(80.0 + 4 * each_w, abs=node.error_w + 0.01)


def test_a_trial_is_measured_while_it_sends_and_not_afterwards() -> None:
    bed = Bed(plan_of("sim", "CSC", cores=TOPOLOGY.dut.layout), power={"platform_w": 80.0}, overhead_s=2.0)
    meters = SimMeters("DUT1", bed.system.simulation.power, lambda: bed.system)
    meters.begin(10.5)
    began_s = meters.now()
    result = bed.run(1e6, 10.0)
    window = certain_window(began_s, meters.now(), result.offered_duration_s)
    found = meters.end()
    (sending,) = node_powers(found.series, window)
    (whole,) = node_powers(found.series)
    assert 80.0 + 4 * POLLING.polling_w < whole.watts < sending.watts and sending.measured_s == pytest.approx(
        8.0, abs=0.3
    )
