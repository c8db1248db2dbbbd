"""What D-ITG's sender is told: every flow of every service instance with its share of the forward load."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.drivers.generators.ditg.programs import payloads, script
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.measurements.trial import Trial
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Frame, FramePart
from resources.libraries.python.model.request.traffic import Departures, Protocol
from tests.unit.drivers.generators.trex.stand_in import plan

B512 = Frame(name="512B", parts=(FramePart(frame_bytes=512),))


def with_flows(rows: int, flows: int) -> Plan:
    made = plan("CSP", rows, 1)
    return made.model_copy(update={"flows": tuple(flow.model_copy(update={"sources": flows}) for flow in made.flows)})


def word(line: str, option: str) -> str:
    words = line.split()
    return words[words.index(option) + 1]


@given(st.integers(1, 8), st.integers(1, 32), st.floats(100, 1e6))
def test_flows_share_half_of_the_load_which_is_what_goes_forward(rows: int, flows: int, load_pps: float) -> None:
    lines = script(with_flows(rows, flows), Trial(load_pps=load_pps, duration_s=2, frame=B512), "sizes").lines
    assert len(lines) == rows * flows
    assert sum(float(word(line, "-C")) for line in lines) == pytest.approx(
        load_pps / 2, rel=0.01, abs=0.01 * len(lines)
    )


def test_each_flow_has_an_address_and_a_port_of_its_own_and_agrees_over_the_loopback() -> None:
    made = script(with_flows(2, 3), Trial(load_pps=1200, duration_s=1.5, frame=B512), "sizes")
    lines = made.lines
    assert made.instances == (1, 1, 1, 2, 2, 2)
    assert len({word(line, "-rp") for line in lines}) == 6
    assert {word(line, "-a") for line in lines} == {"20.1.0.1", "20.2.0.1"}
    assert lines[0] == ("-a 20.1.0.1 -rp 10001 -C 100.000 -Sda 127.0.0.1 -m rttm -t 1500 -c 466 -T UDP")


@pytest.mark.parametrize(("protocol", "payload"), [(Protocol.UDP, 466), (Protocol.ICMP, 466), (Protocol.TCP, 442)])
def test_payloads_make_frames_of_the_size_that_was_asked(protocol: Protocol, payload: int) -> None:
    assert payloads(B512, protocol) == (payload,)


def test_only_a_flow_that_has_the_cpu_for_itself_does_without_sleeping() -> None:
    alone, many = (
        script(with_flows(1, flows), Trial(load_pps=10, duration_s=1, frame=B512), "sizes").lines for flows in (1, 2)
    )
    assert "-poll" in alone[0]
    assert not any("-poll" in line for line in many)


@pytest.mark.parametrize(
    ("departures", "option"),
    [
        (Departures.CONSTANT, "-C 250.000"),
        (Departures.UNIFORM, "-U 166.667 500.000"),  # between 2 and 6 ms, which is 4 ms in the mean
        (Departures.EXPONENTIAL, "-E 250.000"),
        (Departures.NORMAL, "-N 4.000000 1.000000"),  # milliseconds
    ],
)
def test_times_between_packets_have_the_mean_that_the_load_needs(departures: Departures, option: str) -> None:
    trial = Trial(load_pps=500, duration_s=1, frame=B512, departures=departures)
    assert f" {option} " in script(with_flows(1, 1), trial, "sizes").lines[0]


def test_a_mix_of_sizes_comes_from_a_file() -> None:
    mix = Frame(name="mix", parts=(FramePart(frame_bytes=128, weight=2), FramePart(frame_bytes=512)))
    assert payloads(mix, Protocol.UDP) == (82, 82, 466)
    made = script(with_flows(1, 1), Trial(load_pps=10, duration_s=1, frame=mix), "sizes")
    assert word(made.lines[0], "-Fs") == "sizes"


def test_frames_that_are_too_small_are_refused_with_the_smallest_there_is() -> None:
    small = Frame(name="64B", parts=(FramePart(frame_bytes=64),))
    with pytest.raises(Unsupported, match=r"D-ITG sends UDP in frames of 66 bytes or more, and 64B has 64"):
        payloads(small, Protocol.UDP)


def test_a_protocol_without_ports_is_refused() -> None:
    with pytest.raises(Unsupported, match="D-ITG sends UDP, ICMP, TCP, not IP"):
        payloads(B512, Protocol.IP)


def test_icmp_goes_one_way_since_the_kernel_answers() -> None:
    trial = Trial(load_pps=100, duration_s=1, frame=B512, protocol=Protocol.ICMP)
    made = script(with_flows(1, 1), trial, "sizes")
    assert made.lines[0].endswith("-T ICMP 8")
    assert word(made.lines[0], "-m") == "owdm"


def test_bursts_are_on_and_off_for_whole_periods() -> None:
    trial = Trial(load_pps=100, duration_s=6, frame=B512, on_off_s=(2.0, 1.0))
    made = script(with_flows(1, 1), trial, "sizes")
    assert "-t 6000 -B C 2000 C 1000 -c 466" in made.lines[0]


def test_a_trial_of_probes_only_sends_as_many_as_there_are_probes() -> None:
    made = script(
        with_flows(1, 4), Trial(load_pps=0, probe_pps=100, duration_s=1, frame=B512, purpose="latency"), "sizes"
    )
    assert [word(line, "-C") for line in made.lines] == ["25.000"] * 4
