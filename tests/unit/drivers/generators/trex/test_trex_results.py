"""From reports to results: what the generator did wrong is no loss of the system, latency is what histograms hold."""

from ipaddress import IPv4Address
from itertools import pairwise
from statistics import fmean
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.drivers.generators.builtin.wire import LatencyReport
from resources.libraries.python.drivers.generators.trex import Trex, profile, results, wire
from resources.libraries.python.drivers.generators.trex.config import table_of
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Frame, FramePart
from resources.libraries.python.model.request.frames import traffic_profile
from tests.unit.drivers.generators.trex.stand_in import B64, IMIX, plan
from tests.unit.examples import share

PLAN = plan()
NO_ERRORS = wire.ProbeErrors(out_of_order=0, dup=0, seq_too_high=0, seq_too_low=0)
counts = st.integers(0, 10**7)


def report(sent: int = 5000, received: int = 5000, sending_s: float = 1.0, **changes: object) -> wire.Report:
    whole = wire.Report(
        sending_s=sending_s, finished=True, aborted=False, settled=True, latency=(), queue_full=0, cpu_percent=30.0,
        groups=tuple(wire.GroupCount(group=group, sent=sent, received=received) for group in (1, 2)),
        ports=(wire.PortCount(send_errors=0, receive_errors=0),) * 2,
    )  # fmt: skip
    return whole.model_copy(update=changes)


def receive_errors(count: int) -> dict[str, object]:
    return {"ports": (wire.PortCount(send_errors=0, receive_errors=count),)}


def result(given_report: wire.Report, load_pps: float = 10_000, duration_s: float = 1.0, **changes: Any) -> TrialResult:
    trial = Trial(load_pps=load_pps, duration_s=duration_s, frame=B64)
    return results.trial_result(trial, given_report, PLAN.flows, "2026-11-21T00:00:00+00:00", 1.1, **changes)


def probes(group: int = 1, histogram: str | None = None, buckets: dict[int, int] | None = None) -> wire.ProbeLatency:
    return wire.ProbeLatency(group=group, histogram=histogram, buckets=buckets or {}, errors=NO_ERRORS)


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
    found = result(report(sent, received, sending_s, aborted=aborted, cpu_percent=cpu, **receive_errors(dropped)))
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


def losing(lost: int, dropped: int) -> wire.Report:
    flows = (report(received=5000 - lost).groups[0], report().groups[1])
    return report(groups=flows, **receive_errors(dropped))


def probing(probes_back: int) -> wire.Report:
    of_probes = wire.GroupCount(group=profile.probe_groups(0, 1)[0], sent=10, received=probes_back)
    return report(groups=(*report().groups, of_probes), **receive_errors(1200))


@pytest.mark.parametrize(
    ("given_report", "asked", "limited", "note"),
    [
        (report(sending_s=1.009), {}, False, ""),  # stretched from 1 % or 10 ms on
        (report(sending_s=1.02), {}, True, "longer than 1 s to send the load"),
        (report(sending_s=0.209), {"load_pps": 50_000, "duration_s": 0.2}, False, ""),
        (losing(3, 3), {}, True, "itself dropped 3 packets that had come back"),
        (losing(3, 0), {"turned_away": 3}, True, "itself dropped 3 packets"),
        (losing(100, 5), {"turned_away": 5}, False, "itself dropped 10 packets"),
        (losing(100, 8), {"turned_away": 8}, True, "itself dropped 16 packets"),
        (probing(10), {}, False, "1,200 receive errors of the generator's ports, but no packet was lost"),
        (probing(9), {}, True, "itself dropped 1,200 packets"),
        (report(cpu_percent=100.0), {}, False, ""),  # too short to tell
        (report(20_000, 20_000, 4.0, cpu_percent=100.0), {"duration_s": 4.0}, True, "used 100 % of their cores"),
        (report(sent=0, received=0), {"load_pps": 0.5}, True, "no packet of 0.5 pps falls into 1 s"),
    ],
)
def test_what_is_the_generators_fault(
    given_report: wire.Report, asked: dict[str, Any], limited: bool, note: str
) -> None:
    found = result(given_report, **asked)
    assert found.generator_limited is limited
    assert note in (found.note or "") and bool(note) == bool(found.note)
    assert found.offered_duration_s == (1.02 if "longer" in note else asked.get("duration_s", 1.0))


@pytest.mark.slow
@settings(deadline=None, max_examples=share(30))  # a busy machine is no error; decoding takes its time
@given(st.lists(st.integers(0, 5_000_000), min_size=1, max_size=60), st.integers(1, 3))
def test_a_histogram_keeps_its_values(values_us: list[int], parts: int) -> None:
    values = results.merge([probes(index, encoded(*values_us[index::parts])) for index in range(parts)])
    assert values.min_ns == pytest.approx(min(values_us) * 1000 + 500, rel=0.003, abs=1)
    assert values.max_ns == pytest.approx(max(values_us) * 1000 + 500, rel=0.003, abs=1)
    assert values.mean_ns == pytest.approx(fmean(values_us) * 1000 + 500, rel=0.003, abs=2)
    assert HdrHistogram.decode(values.histogram).get_total_count() == len(values_us)
    row = [values.min_ns, values.p50_ns, values.p90_ns, values.p99_ns, values.p999_ns, values.max_ns]
    assert row == sorted(row)


def test_buckets_give_percentiles_where_they_can_and_nothing_else() -> None:
    values = results.merge([probes(buckets={0: 50, 10: 30, 90: 10, 300: 9, 2000: 1})])
    # Half of them are below 10 us, by how much is not known.
    assert values == LatencyReport(p90_ns=100_000, p99_ns=400_000, p999_ns=3_000_000, histogram=values.histogram)


def test_no_probe_has_no_latency_and_what_is_no_histogram_is_reported() -> None:
    assert results.merge([probes(histogram=encoded())]) is None
    assert results.merge([probes()]) is None
    with pytest.raises(CsitError, match="cannot be read: nonsense"):
        results.merge([probes(histogram="nonsense")])


def test_probes_of_all_sizes_are_one_flows_latency() -> None:
    groups = range(10_000, 10_006)
    counts = tuple(wire.GroupCount(group=each, sent=10, received=9) for each in groups)
    latency = tuple(probes(each, encoded(*[100 if each < 10_003 else 900] * 9)) for each in groups)
    trial = Trial(load_pps=10_000, duration_s=1.0, frame=IMIX, probe_pps=30)
    given_report = report(groups=(*report().groups, *counts), latency=latency)
    found = results.trial_result(trial, given_report, PLAN.flows, "2026-11-21T00:00:00+00:00", 1.1)
    assert [(row.sent, row.received) for row in found.latency] == [(30, 27), (30, 27)]
    assert [row.p50_ns for row in found.latency] == pytest.approx([100_500, 900_500], rel=0.002)
    assert found.note is None


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
    found = profile.streams(asked.flows, table.number, trial, PROFILE)
    assert len(found) == 2 * len(asked.flows) * len(mix)
    assert sum(each.pps for each in found if not each.probe) == pytest.approx(load_pps)
    assert sum(each.pps for each in found if each.probe) == pytest.approx(probe_pps * len(asked.flows))
    weights = sum(weight for _, weight in mix)
    assert len({each.group for each in found if not each.probe}) == len(asked.flows)
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
            source, destination = (IPv4Address(text) for text in (flow.source_ip, flow.destination_ip))
            assert header[12:20] == source.packed + destination.packed
            assert int.from_bytes(header[2:4]) == size - 18
            assert (stream.vary.first, stream.vary.count) == (int(source), 254)
            assert packet[stream.vary.offset :][:4] == source.packed
            if tagged:
                assert packet[12:16] == b"\x81\x00" + (100 + flow.instance).to_bytes(2)


def test_smallest_probes_hold_number_and_time() -> None:
    for asked in (plan(), with_vlans(plan())):
        flow = asked.flows[0]
        packet = profile.packet(flow, 64, PROFILE.probes)
        payload = packet[profile.ipv4_offset(flow) + profile.IPV4_BYTES + profile.UDP_BYTES :]
        assert len(payload) >= 16, "the server overwrites so many with number and time"
        assert int.from_bytes(packet[profile.ipv4_offset(flow) + 24 :][:2]) == profile.UDP_BYTES + len(payload)


def test_probes_of_flows_take_turns() -> None:
    asked = plan(rows=3)
    trial = Trial(load_pps=0, duration_s=1.0, frame=B64, probe_pps=100)
    starts = [each.start_us for each in profile.streams(asked.flows, table_of(asked, Trex()).number, trial, PROFILE)]
    assert starts[0] == 0
    assert [later - earlier for earlier, later in pairwise(starts)] == pytest.approx([10_000 / 6] * 5)
    assert max(starts) < 10_000


def test_more_probe_streams_than_there_are_counters() -> None:
    asked = plan(rows=16)
    number = {flow.tx_interface: 0 for flow in asked.flows}
    trial = Trial(load_pps=1000, duration_s=1.0, frame=IMIX, probe_pps=100)
    assert len(profile.streams(asked.flows, number, trial, PROFILE)) <= 2 * profile.MAX_PROBE_GROUPS
    more = (*asked.flows, *(flow.model_copy(update={"instance": flow.instance + 16}) for flow in asked.flows))
    with pytest.raises(Unsupported, match=r"64 flows with 3 frame sizes each need 192 streams .*, TRex has 128"):
        profile.streams(more, number, trial, PROFILE)
    # Without probes any number goes.
    assert len(profile.streams(more, number, trial.model_copy(update={"probe_pps": 0.0}), PROFILE)) == 192
