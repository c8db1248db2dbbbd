"""From reports to results: what the generator did wrong is no loss of the system, latency is what histograms hold."""

from collections.abc import Callable
from ipaddress import IPv4Address
from itertools import pairwise
from unittest.mock import patch

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.drivers.generators import overload
from resources.libraries.python.drivers.generators.builtin.wire import LatencyReport
from resources.libraries.python.drivers.generators.trex import profile, results
from resources.libraries.python.drivers.generators.trex.config import table_of
from resources.libraries.python.drivers.generators.trex.profile import MAX_PROBE_GROUPS, streams
from resources.libraries.python.drivers.generators.trex.registration import Trex
from resources.libraries.python.drivers.generators.trex.results import trial_result
from resources.libraries.python.drivers.generators.trex.wire import (
    GroupCount,
    PortCount,
    ProbeErrors,
    ProbeLatency,
    Report,
)
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Frame, FramePart
from resources.libraries.python.model.request.frames import traffic_profile
from resources.libraries.python.planning.linerate import MaxRate
from tests.builders import finished
from tests.unit.drivers.generators.trex.stand_in import B64, IMIX, plan
from tests.unit.examples import share

PLAN = plan()
NO_ERRORS = ProbeErrors(out_of_order=0, dup=0, seq_too_high=0, seq_too_low=0)
counts = st.integers(0, 10**7)


def report(sent: int = 5000, received: int = 5000, sending_s: float = 1.0, **changes: object) -> Report:
    whole = Report(
        sending_s=sending_s,
        finished=True,
        aborted=False,
        settled=True,
        groups=tuple(GroupCount(group=group, sent=sent, received=received) for group in (1, 2)),
        ports=tuple(PortCount(send_errors=0, receive_errors=0) for _ in range(2)),
        latency=(),
        queue_full=0,
        cpu_percent=30.0,
    )
    return whole.model_copy(update=changes)


def result(
    given_report: Report, load_pps: float = 10_000, probe_pps: float = 0.0, duration_s: float = 1.0
) -> TrialResult:
    trial = Trial(load_pps=load_pps, duration_s=duration_s, frame=B64, probe_pps=probe_pps)
    return trial_result(trial, given_report, PLAN.flows, "2026-11-21T00:00:00+00:00", 1.1)


def encoded(*values_us: int) -> str:
    histogram = HdrHistogram(1, 10_000_000, 3)
    for value in values_us:
        histogram.record_value(value)
    return str(histogram.encode().decode())


@settings(deadline=None)  # a busy machine is no error
@given(st.tuples(counts, counts, counts), st.floats(0.01, 100), st.booleans(), st.floats(0, 100))
def test_whatever_is_reported_the_result_is_sound(
    packets: tuple[int, int, int], sending_s: float, aborted: bool, cpu: float
) -> None:
    sent, received, dropped = packets
    ports = (PortCount(send_errors=0, receive_errors=dropped),)
    found = result(report(sent, received, sending_s, aborted=aborted, ports=ports, cpu_percent=cpu))
    assert found.offered_duration_s > 0
    assert found.loss_ratio is None or 0 <= found.loss_ratio <= 1
    # A trial that is the generator's fault says why, and a trial that was not offered in full is always one.
    assert found.generator_limited <= bool(found.note)
    if not aborted and (sent < 4990 or sending_s > 1.011):
        assert found.generator_limited
    # What the generator lost is at most a tenth of what counts as the system's loss.
    if not found.generator_limited:
        assert dropped <= 0.1 * 2 * max(0, sent - received) or received >= sent
    if aborted:
        assert found.offered_pps <= 10_000 * 1.0001


@pytest.mark.parametrize(
    ("sending_s", "duration_s", "limited"), [(1.009, 1.0, False), (1.02, 1.0, True), (0.209, 0.2, False)]
)
def test_sending_is_stretched_from_1_percent_or_10_ms_on(sending_s: float, duration_s: float, limited: bool) -> None:
    found = result(report(sending_s=sending_s), load_pps=10_000 / duration_s, duration_s=duration_s)
    assert found.generator_limited is limited
    assert found.offered_duration_s == (sending_s if limited else duration_s)


@pytest.mark.parametrize(
    ("lost", "dropped", "turned_away", "limited"),
    [(0, 0, 0, False), (3, 3, 0, True), (3, 0, 3, True), (100, 5, 5, False), (100, 8, 8, True)],
)
def test_what_the_generator_lost_itself(lost: int, dropped: int, turned_away: int, limited: bool) -> None:
    groups = (GroupCount(group=1, sent=5000, received=5000 - lost), GroupCount(group=2, sent=5000, received=5000))
    given_report = report(groups=groups, ports=(PortCount(send_errors=0, receive_errors=dropped),))
    trial = Trial(load_pps=10_000, duration_s=1.0, frame=B64)
    found = trial_result(trial, given_report, PLAN.flows, "2026-11-21T00:00:00+00:00", 1.1, turned_away=turned_away)
    assert found.generator_limited is limited
    own = dropped + turned_away
    note = f"the generator itself dropped {own} packets that had come back to its ports"
    assert found.note == (note if own else None)


@pytest.mark.parametrize(("probes_back", "limited"), [(10, False), (9, True)])
def test_errors_of_ports_are_a_remark_where_neither_load_nor_probe_was_lost(probes_back: int, limited: bool) -> None:
    probes = GroupCount(group=profile.probe_groups(0, 1)[0], sent=10, received=probes_back)
    whole = report(ports=(PortCount(send_errors=0, receive_errors=1200),))
    found = result(whole.model_copy(update={"groups": (*whole.groups, probes)}))
    assert found.generator_limited is limited
    note = "1,200 receive errors of the generator's ports, but no packet was lost"
    assert (found.note == note) is not limited, found.note


def test_a_busy_core_counts_where_the_trial_was_long_enough() -> None:
    assert not result(report(cpu_percent=100.0)).generator_limited
    long = result(report(sent=20_000, received=20_000, sending_s=4.0, cpu_percent=100.0), duration_s=4.0)
    assert long.generator_limited
    assert long.note == "the generator's sending threads used 100 % of their cores"


def test_a_load_without_packets_is_no_load() -> None:
    found = result(report(sent=0, received=0), load_pps=0.5)
    assert found.generator_limited
    assert found.note == "no packet of 0.5 pps falls into 1 s"


@pytest.mark.slow
@settings(deadline=None, max_examples=share(30))  # a busy machine is no error; decoding takes its time
@given(st.lists(st.integers(0, 5_000_000), min_size=1, max_size=60), st.integers(1, 3))
def test_a_histogram_keeps_its_values(values_us: list[int], parts: int) -> None:
    groups = [
        ProbeLatency(group=index, histogram=encoded(*values_us[index::parts]), buckets={}, errors=NO_ERRORS)
        for index in range(parts)
    ]
    values = results.merge(groups)
    assert values is not None
    ordered = sorted(values_us)
    assert values.min_ns == pytest.approx(ordered[0] * 1000 + 500, rel=0.003, abs=1)
    assert values.max_ns == pytest.approx(ordered[-1] * 1000 + 500, rel=0.003, abs=1)
    assert values.mean_ns == pytest.approx(sum(ordered) / len(ordered) * 1000 + 500, rel=0.003, abs=2)
    assert HdrHistogram.decode(values.histogram).get_total_count() == len(values_us)
    row = [values.min_ns, values.p50_ns, values.p90_ns, values.p99_ns, values.p999_ns, values.max_ns]
    assert row == sorted(each for each in row if each is not None)


def test_buckets_give_percentiles_where_they_can_and_nothing_else() -> None:
    group = ProbeLatency(group=1, histogram=None, buckets={0: 50, 10: 30, 90: 10, 300: 9, 2000: 1}, errors=NO_ERRORS)
    values = results.merge([group])
    assert values is not None
    # Half of them are below 10 us, by how much is not known.
    assert values == LatencyReport(p90_ns=100_000, p99_ns=400_000, p999_ns=3_000_000, histogram=values.histogram)


def test_no_probe_came_back() -> None:
    assert results.merge([ProbeLatency(group=1, histogram=encoded(), buckets={}, errors=NO_ERRORS)]) is None
    assert results.merge([ProbeLatency(group=1, histogram=None, buckets={}, errors=NO_ERRORS)]) is None


def test_a_histogram_that_cannot_be_read_is_reported() -> None:
    with pytest.raises(CsitError, match="cannot be read: nonsense"):
        results.merge([ProbeLatency(group=1, histogram="nonsense", buckets={}, errors=NO_ERRORS)])


def test_probes_of_all_sizes_are_one_flows_latency() -> None:
    first = range(10_000, 10_003)
    given_report = report().model_copy(
        update={
            "groups": (
                *report().groups,
                *(GroupCount(group=each, sent=10, received=9) for each in range(10_000, 10_006)),
            ),
            "latency": tuple(
                ProbeLatency(
                    group=each, histogram=encoded(*[100 if each in first else 900] * 9), buckets={}, errors=NO_ERRORS
                )
                for each in range(10_000, 10_006)
            ),
        }
    )
    trial = Trial(load_pps=10_000, duration_s=1.0, frame=IMIX, probe_pps=30)
    found = trial_result(trial, given_report, PLAN.flows, "2026-11-21T00:00:00+00:00", 1.1)
    assert [(row.sent, row.received) for row in found.latency] == [(30, 27), (30, 27)]
    assert [row.p50_ns for row in found.latency] == pytest.approx([100_500, 900_500], rel=0.002)
    assert found.note is None


def fake(capacity_pps: float, offers_pps: float) -> tuple[list[float], Callable[[Trial], TrialResult]]:
    """A generator with a limit in front of a system with a limit that collapses beyond twice its capacity."""
    asked: list[float] = []

    def run(trial: Trial) -> TrialResult:
        load_pps, duration_s = trial.load_pps or 0.0, trial.duration_s
        asked.append(load_pps)
        offered_pps = min(load_pps, offers_pps)
        forwarded_pps = capacity_pps / 20 if offered_pps > 2 * capacity_pps else min(capacity_pps, offered_pps)
        counts = round(offered_pps * duration_s), round(forwarded_pps * duration_s)
        return finished(trial, counts, generator_limited=offered_pps < load_pps)

    return asked, run


@pytest.mark.parametrize(
    ("capacity_pps", "offers_pps", "line_pps", "least_pps", "most_pps"),
    [
        (1e9, 600_000, None, 0.85 * 600_000, 600_000),  # a cable: what the generator can, a little less
        (1e9, 1e9, 14.88e6, 14.88e6, 14.88e6),  # a cable of known rate that can be filled
        (100_000, 600_000, None, 200_000, 400_000),  # a system that collapses: not more than four times what it can
    ],
)
def test_the_highest_load_that_makes_sense(
    capacity_pps: float, offers_pps: float, line_pps: float | None, least_pps: float, most_pps: float
) -> None:
    asked, run = fake(capacity_pps, offers_pps)
    line = None if line_pps is None else MaxRate(line_pps / 2, line_pps / 2, line_pps, "the cable")
    made = {"run": staticmethod(run), "_plan": None}
    with patch.object(overload, "max_rate", return_value=line):
        found = type("", (overload.SearchedByTrials,), made)().highest_loads(
            Trial(load_pps=1e6, duration_s=1.0, frame=B64)
        )
    assert least_pps <= found.search_pps <= most_pps
    assert found.offered_pps == pytest.approx(line_pps or 0.9 * offers_pps, rel=0.11), "MRR is measured there"
    assert len(asked) < 12


PROFILE = traffic_profile()
cells = st.tuples(st.sampled_from(["CSC", "CSP", "VSC"]), st.integers(1, 6), st.integers(1, 4))
mixes = st.lists(
    st.tuples(st.integers(64, 1518), st.integers(1, 9)), min_size=1, max_size=4, unique_by=lambda row: row[0]
)


def with_vlans(given_plan: Plan) -> Plan:
    flows = tuple(flow.model_copy(update={"vlan": 100 + flow.instance}) for flow in given_plan.flows)
    return given_plan.model_copy(update={"flows": flows})


@settings(deadline=None, max_examples=share(40))  # a busy machine is no error
@given(cells, mixes, st.floats(1, 1e8), st.floats(0.1, 1e4), st.booleans())
def test_every_flow_gets_an_equal_share_of_the_load(
    cell: tuple[str, int, int], mix: list[tuple[int, int]], load_pps: float, probe_pps: float, tagged: bool
) -> None:
    asked = with_vlans(plan(*cell)) if tagged else plan(*cell)
    frame = Frame(name="mix", parts=tuple(FramePart(frame_bytes=size, weight=weight) for size, weight in mix))
    table = table_of(asked, Trex())
    trial = Trial(load_pps=load_pps, duration_s=1.0, frame=frame, probe_pps=probe_pps)
    found = streams(asked.flows, table.number, trial, PROFILE)
    assert len(found) == 2 * len(asked.flows) * len(mix)
    assert sum(each.pps for each in found if not each.probe) == pytest.approx(load_pps)
    assert sum(each.pps for each in found if each.probe) == pytest.approx(probe_pps * len(asked.flows))
    weights = sum(weight for _, weight in mix)
    groups = {each.group for each in found if not each.probe}
    assert len(groups) == len(asked.flows)
    assert len({each.group for each in found}) == len(asked.flows) * (1 + len(mix))
    for index, flow in enumerate(asked.flows):
        mine = [each for each in found if each.group == index + 1]
        assert {each.port for each in mine} == {table.number[flow.tx_interface]}
        for (size, weight), stream in zip(mix, mine, strict=True):
            packet = bytes.fromhex(stream.frame)
            assert len(packet) == size - 4 + (4 if tagged else 0)
            assert stream.pps == pytest.approx(load_pps / len(asked.flows) * weight / weights)
            assert packet[:12].hex(":") == f"{flow.destination_mac}:{flow.source_mac}"
            header = packet[profile.ipv4_offset(flow) :][:20]
            assert profile.checksum_of(header) == 0
            assert str(IPv4Address(header[12:16])) == flow.source_ip
            assert str(IPv4Address(header[16:20])) == flow.destination_ip
            assert int.from_bytes(header[2:4]) == size - 18
            assert stream.vary is not None
            assert (stream.vary.first, stream.vary.count) == (int(IPv4Address(flow.source_ip)), 254)
            place = stream.vary.offset
            assert packet[place : place + 4] == IPv4Address(flow.source_ip).packed
            if tagged:
                assert packet[12:16] == b"\x81\x00" + (100 + flow.instance).to_bytes(2)


def test_smallest_probes_hold_number_and_time() -> None:
    for asked in (plan(), with_vlans(plan())):
        flow = asked.flows[0]
        packet = profile.probe_packet(flow, 64, PROFILE.probes)
        payload = packet[profile.ipv4_offset(flow) + profile.IPV4_BYTES + profile.UDP_BYTES :]
        assert len(payload) >= 16, "the server overwrites so many with number and time"
        assert int.from_bytes(packet[profile.ipv4_offset(flow) + 24 :][:2]) == profile.UDP_BYTES + len(payload)


def test_probes_of_flows_take_turns() -> None:
    asked = plan(rows=3)
    trial = Trial(load_pps=0, duration_s=1.0, frame=B64, probe_pps=100)
    starts = [each.start_us for each in streams(asked.flows, table_of(asked, Trex()).number, trial, PROFILE)]
    assert starts[0] == 0
    assert [later - earlier for earlier, later in pairwise(starts)] == pytest.approx([10_000 / 6] * 5)
    assert max(starts) < 10_000


def test_more_probe_streams_than_there_are_counters() -> None:
    asked = plan(rows=16)
    number = {flow.tx_interface: 0 for flow in asked.flows}
    trial = Trial(load_pps=1000, duration_s=1.0, frame=IMIX, probe_pps=100)
    assert len(streams(asked.flows, number, trial, PROFILE)) <= 2 * MAX_PROBE_GROUPS
    more = (*asked.flows, *(flow.model_copy(update={"instance": flow.instance + 16}) for flow in asked.flows))
    with pytest.raises(
        Unsupported, match="64 flows with 3 frame sizes each need 192 streams of latency probes, TRex has 128"
    ):
        streams(more, number, trial, PROFILE)
    # Without probes any number goes.
    assert len(streams(more, number, trial.model_copy(update={"probe_pps": 0.0}), PROFILE)) == 192
