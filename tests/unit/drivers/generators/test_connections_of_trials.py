"""A trial of a peer that opens connections asks for whole ones, no more than there are ports, and for no packets."""

import pytest

from resources.libraries.python.drivers.generators.connection_rates import connections_of
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.measurements.trial import Protocol, Trial
from resources.libraries.python.model.request.frames import frame

TCP = Trial(load_pps=3000.0, duration_s=2.0, frame=frame("64B"), protocol=Protocol.TCP)


def test_each_instance_opens_its_part_and_one_at_least() -> None:
    assert connections_of(TCP, 3, 2000, "peer") == 2000
    assert connections_of(TCP.model_copy(update={"load_pps": 0.1}), 1, 2000, "peer") == 1


def test_more_connections_than_ports_are_refused_with_both_numbers() -> None:
    with pytest.raises(Unsupported, match=r"^2,000 connections .* has ports for 1,999$"):
        connections_of(TCP, 3, 1999, "peer")


@pytest.mark.parametrize("change", [{"protocol": Protocol.UDP}, {"load_pps": None}, {"probe_pps": 100.0}])
def test_packets_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(Unsupported, match=r"^peer opens TCP connections"):
        connections_of(TCP.model_copy(update=change), 3, 2000, "peer")
