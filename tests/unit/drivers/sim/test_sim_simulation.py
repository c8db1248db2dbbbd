"""Parameters of a simulated testbed are validated, and default to its ports."""

import re
from math import inf

import pytest

from resources.libraries.python.drivers.sim.clock import VirtualClock
from resources.libraries.python.drivers.sim.simulation import ModelName, parse_simulation, simulation_of
from resources.libraries.python.errors import ConfigError
from tests.builders import shipped

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
