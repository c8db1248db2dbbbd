"""What D-ITG and the activity reporter leave behind, and the result that is made of it."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.generators.ditg import programs
from resources.libraries.python.drivers.generators.ditg.driver import DitgGenerator, PortReading, trial_result
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.measurements.counters import InterfaceCounters
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Frame, FramePart
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.traffic import Protocol
from tests.unit.drivers.generators.trex.stand_in import B64, plan

B512 = frame("512B")
MIX = Frame(name="mix", parts=(FramePart(frame_bytes=128, weight=2), FramePart(frame_bytes=512)))
TRIAL = Trial(load_pps=2000, duration_s=2, frame=B512)
_ENDS = (
    "Src>                                      10.1.0.1/57782 Dest>                                      20.1.0.1/10002"
)
DECODED = f"""Flow>0002 Seq>      1 {_ENDS} txTime>20:03:21.320070 rxTime>20:03:21.321676 Size>  470
Flow>0001 Seq>      1 {_ENDS} txTime>20:03:21.321674 rxTime>20:03:21.321705 Size>  470
Flow>0002 Seq>      2 {_ENDS} txTime>23:59:59.999900 rxTime>0:0:0.000100 Size>  470
"""
"""As ITGDec 2.8.1 writes it with -l."""
SAID_BY_SAR = """Linux 6.1.0 (lab) \t2026-11-21 \t_x86_64_\t(2 CPU)

20:03:52        IFACE   rxpck/s   txpck/s    rxkB/s    txkB/s   rxcmp/s   txcmp/s  rxmcst/s   %ifutil
20:03:53           g1      0.00      0.00      0.00      0.00      0.00      0.00      0.00      0.00
20:03:53           g2      5.00      7.00      0.00      0.00      0.00      0.00      0.00      0.00

20:03:53        IFACE   rxpck/s   txpck/s    rxkB/s    txkB/s   rxcmp/s   txcmp/s  rxmcst/s   %ifutil
20:03:54           g1   1938.00   1939.00    969.00    969.00      0.00      0.00      0.00      0.08
20:03:54           g2   1938.00   1938.00    969.00    969.00      0.00      0.00      0.00      0.08

Average:        IFACE   rxpck/s   txpck/s    rxkB/s    txkB/s   rxcmp/s   txcmp/s  rxmcst/s   %ifutil
Average:           g1    969.00    969.50    484.50    484.50      0.00      0.00      0.00      0.04
"""


def test_the_decoders_table_is_read_over_midnight_too() -> None:
    log = programs.packets(DECODED)
    assert log.delay_s == pytest.approx([0.001606, 0.000031, 0.0002], abs=1e-9)
    assert programs.one_way_ns(log).tolist() == pytest.approx([15_500, 100_000, 803_000], abs=2)
    assert programs.of_flows(log, [2]).sent_s == pytest.approx([72201.32007, 86399.9999])
    assert len(programs.of_flows(log, [3])) == len(programs.packets("")) == 0
    with pytest.raises(ValueError, match="2 packets in 3 lines"):
        programs.packets(DECODED.replace("Size>  470", "Size>", 1))


def test_delays_and_what_left_the_ports_are_those_of_the_second_in_which_packets_were_sent() -> None:
    sent = np.array([86399.5, 86399.6, 0.6])
    log = programs.Packets(np.ones(3, int), sent, sent + np.array([0.002, 0.004, 0.010]))
    assert programs.mean_one_way_ns(log, [86399.4, 0.4, 1.4, 2.4]) == (pytest.approx(1.5e6), pytest.approx(5e6), None)
    assert programs.mean_one_way_ns(programs.packets(""), [10.0, 11.0]) == (None,)
    assert programs.sent_by_second(SAID_BY_SAR, {"g1"}) == (0.0, 1939.0)
    assert programs.sent_by_second(SAID_BY_SAR, {"g1", "g2"}) == (7.0, 3877.0)
    assert programs.sent_by_second("sar: command not found", {"g1"}) == ()


def result(
    trial: Trial, *, sent: int = 2000, received: int = 1990, logged: int = 1990, sar_says: float | None = None
) -> TrialResult:
    """Of a run of two seconds, each with half of the packets; the receiver sends back what it gets."""
    flows = plan("CSP", 1, 1).flows
    near, far = flows[0].tx_interface, flows[0].rx_interface

    def at(time_s: float, share: float) -> PortReading:
        back, out = round(received * share), round(sent * share)
        counters = {near: InterfaceCounters(back, out, 0, 0), far: InterfaceCounters(back, back, 0, 0)}
        return PortReading(1000.0 + time_s, counters)

    stamps = np.linspace(1000.0, 1002.0, logged, endpoint=False)
    log = programs.Packets(np.ones(logged, int), stamps, stamps + 0.001)
    return trial_result(
        trial, flows, [at(-1, 0), at(0, 0), at(1, 0.5), at(2, 1), at(4, 1)], instances=(1,), total_duration_s=4.0,
        run=programs.SenderRun(log, log, () if sar_says is None else (sar_says,)), started_at="2026-11-21",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "limited", "note"),
    [
        ({"sent": 577, "received": 577, "logged": 577}, True, "D-ITG offered 577 pps of 2.00 kpps"),
        ({"logged": 1500}, False, "the log has 1500 of the 1990 packets that arrived: delays are of those"),
        ({"sar_says": 1995}, False, None),
        ({"sar_says": 1000}, False, "sar reports 1000 packets sent, the interface counted 2000"),
    ],
)
def test_what_is_doubtful_is_noted(changes: dict[str, Any], limited: bool, note: str | None) -> None:
    made = result(TRIAL, **changes)
    assert (made.generator_limited, made.note) == (limited, note)


def test_icmp_has_no_delay_and_bursts_are_judged_by_the_time_that_they_are_on() -> None:
    made = result(TRIAL.model_copy(update={"protocol": Protocol.ICMP}))
    assert made.latency == () and {each.delay_ns for each in made.intervals} == {None}
    bursts = TRIAL.model_copy(update={"load_pps": 4000, "on_off_s": (1.0, 1.0)})
    assert not result(bursts).generator_limited


def generator(rows: int, flows: int) -> DitgGenerator:
    """A generator that is not started, for so many service instances with so many flows each."""
    return DitgGenerator(None, DriverContext(with_flows(rows, flows), None, None, 1518))


def test_flows_of_all_instances_are_as_many_as_can_be_closed_in_time() -> None:
    generator(rows=2, flows=32)
    with pytest.raises(Unsupported, match=r"^D-ITG closes .*: at most 64 in all, and the plan has 66$"):
        generator(rows=2, flows=33)


@pytest.mark.parametrize(
    ("able_pps", "asked_pps"), [(60_000, [100_000]), (150_000, [100_000, 200_000]), (9e5, [1e5, 2e5, 4e5])]
)
def test_the_highest_load_is_looked_for_by_asking_for_twice_as_much_until_it_is_not_sent(
    able_pps: float, asked_pps: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    def run(_: DitgGenerator, trial: Trial) -> TrialResult:
        asked.append(trial.load_pps)
        sent = round(min(able_pps, trial.load_pps))
        return result(trial.model_copy(update={"duration_s": 1}), sent=sent // 2, received=sent // 2, logged=100)

    monkeypatch.setattr(DitgGenerator, "run", run)
    found = generator(rows=1, flows=1).highest_loads(TRIAL)
    assert asked == asked_pps
    assert found.offered_pps == found.search_pps == pytest.approx(0.9 * min(able_pps, 400_000), rel=0.01)


def with_flows(rows: int, flows: int) -> Plan:
    made = plan("CSP", rows, 1)
    return made.model_copy(update={"flows": tuple(flow.model_copy(update={"sources": flows}) for flow in made.flows)})


def lines_of(flows: int, **changes: Any) -> tuple[str, ...]:
    """Command line of the sender for one service instance with so many flows."""
    return programs.script(with_flows(1, flows), TRIAL.model_copy(update={"load_pps": 500, **changes}), "sizes").lines


def word(line: str, option: str) -> str:
    words = line.split()
    return words[words.index(option) + 1]


@given(st.integers(1, 8), st.integers(1, 32), st.floats(100, 1e6))
def test_flows_share_half_of_the_load_which_is_what_goes_forward(rows: int, flows: int, load_pps: float) -> None:
    lines = programs.script(with_flows(rows, flows), TRIAL.model_copy(update={"load_pps": load_pps}), "sizes").lines
    assert len(lines) == rows * flows
    rates = [float(word(line, "-C")) for line in lines]
    assert sum(rates) == pytest.approx(load_pps / 2, rel=0.01, abs=0.01 * len(lines))


@pytest.mark.parametrize(
    ("frame", "protocol", "expected"),
    [
        (B512, Protocol.UDP, (466,)),
        (B512, Protocol.ICMP, (466,)),
        (B512, Protocol.TCP, (442,)),
        (MIX, Protocol.UDP, (82, 82, 466)),
    ],
)
def test_payloads_make_frames_of_the_size_that_was_asked(
    frame: Frame, protocol: Protocol, expected: tuple[int, ...]
) -> None:
    assert programs.payloads(frame, protocol) == expected


@pytest.mark.parametrize(
    ("flows", "changes", "option"),
    [
        (1, {}, "-poll"),  # only a flow that has the CPU for itself does without sleeping
        (1, {"frame": MIX}, "-Fs sizes"),
        (1, {"protocol": Protocol.ICMP}, "-m owdm"),  # one way, since the kernel answers
        (1, {"duration_s": 6, "on_off_s": (2.0, 1.0)}, "-t 6000 -B C 2000 C 1000 -c 466"),  # for whole periods
        (4, {"load_pps": 0, "probe_pps": 100, "purpose": "latency"}, "-C 25.000"),  # as many as there are probes
    ],
)
def test_the_sender_is_told_what_the_trial_needs(flows: int, changes: dict[str, Any], option: str) -> None:
    made = lines_of(flows, **changes)
    assert len(made) == flows
    assert all(f" {option} " in f"{line} " for line in made)


@pytest.mark.parametrize(
    ("protocol", "why"),
    [
        (Protocol.UDP, "D-ITG sends UDP in frames of 66 bytes or more, and 64B has 64"),
        (Protocol.IP, "D-ITG sends UDP, ICMP, TCP, not IP"),
    ],
)
def test_what_it_cannot_send_is_refused(protocol: Protocol, why: str) -> None:
    with pytest.raises(Unsupported, match=why):
        programs.payloads(B64, protocol)
