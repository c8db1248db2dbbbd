"""TCP connections by TRex: loads, results, and the exchange with its client against a stand-in for TRex's library."""

from pathlib import Path
from typing import Any

import pytest

from resources.libraries.python.drivers.generators.connection_rates import highest
from resources.libraries.python.drivers.generators.trex.config import arguments, place, table_of, yaml_of
from resources.libraries.python.drivers.generators.trex.registration import Trex
from resources.libraries.python.drivers.generators.trex.stateful import established, load_of, trial_result
from resources.libraries.python.drivers.generators.trex.wire import (
    ConnectionCounts,
    ConnectionOrder,
    ConnectionReport,
    OpenedServers,
    OpenStateful,
)
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.measurements.trial import Direction, Protocol, Trial, TrialResult
from resources.libraries.python.model.request.frames import frame
from tests.unit.drivers.generators.trex.stand_in import StandIn, plan, running

FORWARD = [flow for flow in plan(rows=2).flows if flow.direction is Direction.FORWARD]
TRIAL = Trial(load_pps=2000.0, duration_s=0.1, frame=frame("64B"), protocol=Protocol.TCP, purpose="connections")


def counts(connections: int = 100, **changes: Any) -> ConnectionCounts:
    whole = dict.fromkeys(("attempted", "connected", "closed", "accepted"), connections)
    return ConnectionCounts(**{**whole, "dropped": 0, "repeated": 0, "errors": {}, "sending_s": 0.1, **changes})


def result(*rows: ConnectionCounts) -> TrialResult:
    matched = [(flow, 100, row) for flow, row in zip(FORWARD, rows, strict=True)]
    return trial_result(TRIAL, matched, "2026-01-01T00:00:00+00:00", 0.3)


def test_a_connection_counts_where_both_ends_have_opened_and_closed_it_at_the_first_try() -> None:
    assert established(counts()) == 100
    assert established(counts(connected=97, closed=97, accepted=97)) == 97
    assert established(counts(dropped=5)) == 95, "those that are given up are closed as well"
    assert established(counts(closed=90)) == 90, "the server has not closed the others"
    assert established(counts(repeated=4)) == 96
    assert established(counts(connected=2, closed=2, repeated=4)) == 0


def test_a_trial_says_how_connections_failed_and_whose_fault_it_was() -> None:
    whole = result(counts(), counts())
    assert [(flow.instance, flow.sent, flow.received) for flow in whole.flows] == [(1, 100, 100), (2, 100, 100)]
    assert (whole.generator_limited, whole.note) == (False, None)
    errors = {"server: err_no_syn": 2, "client: tcps_conndrops": 1}
    lost = result(counts(), counts(connected=98, closed=97, accepted=98, errors=errors))
    assert [flow.received for flow in lost.flows] == [100, 97] and not lost.generator_limited
    assert lost.note == "2 SYNs had no answer; 1 connections were not closed; server: err_no_syn 2"
    short = result(counts(), counts(80))
    assert short.generator_limited and short.note == "TRex opened 180 of 200 connections in the time for them"
    late = result(counts(), counts(sending_s=0.4))
    assert late.generator_limited and late.note == "TRex took 300 ms longer than 0.1 s to open the connections"


def test_servers_have_ports_and_files_of_their_own_and_make_checksums() -> None:
    made = plan(rows=2)
    table = table_of(made, Trex(ports="af_packet"))
    placement = place(made, 2, dpdk=False)
    first, second = (
        yaml_of(table, placement, 0, largest_frame_bytes=1518, memory_mb=None, number=number) for number in (0, 1)
    )
    assert 'prefix: "csit"\n' in first and "zmq" not in first
    assert 'prefix: "csit1"\n' in second and "zmq_pub_port: 4502\n" in second and "zmq_rpc_port: 4503\n" in second
    stateful = arguments(Path("/opt/trex"), Path("cfg"), mellanox=False, stateful=True)
    assert "--astf" in stateful and "--stl" not in stateful and "--checksum-offload-disable" in stateful
    assert "--astf" not in arguments(Path("/opt/trex"), Path("cfg"), mellanox=False)


def run(
    folder: Path, most_s: float = 1.0, rest_s: float = 0.05, **scenario: Any
) -> tuple[ConnectionReport, list[dict[str, Any]]]:
    """One trial in a scenario."""
    stand_in = StandIn(folder, **scenario)
    with running(folder) as client:
        servers = ((4500, 4501), (4502, 4503))
        opening = OpenStateful(directory=str(folder), servers=servers, within_s=5.0)
        opened = client.ask(opening, OpenedServers, "the servers' answer", 60.0)
        assert (opened.version, opened.drivers) == ("v3.08", ("net_af_packet",))
        loads = tuple(load_of(flow, 100, 1000.0) for flow in FORWARD)
        order = ConnectionOrder(loads=loads, most_s=most_s, rest_s=rest_s)
        return client.ask(order, ConnectionReport, "a trial's report", 60.0), stand_in.calls()


def test_every_server_opens_the_connections_of_its_instance(tmp_path: Path) -> None:
    report, calls = run(tmp_path, refusals=2)
    for row in report.counts:
        assert established(row) == row.attempted == 100
        assert row.sending_s == pytest.approx(0.1, abs=0.01)
    made = [call for call in calls if call["call"] == "ASTFClient"]
    assert [(call["sync_port"], call["async_port"]) for call in made] == [(4501, 4500), (4503, 4502)]
    for flow, call in zip(FORWARD, [call for call in calls if call["call"] == "load_profile"], strict=True):
        client, server = (call["templates"][f"{side}_template"] for side in ("client", "server"))
        first, last = client["ip_gen"]["dist_client"]["ip_range"]
        assert first == flow.source_ip and last.endswith(".254")
        assert client["ip_gen"]["dist_server"]["ip_range"] == [flow.destination_ip] * 2
        assert (client["port"], client["cps"], client["limit"]) == (80, 1000.0, 100)
        assert client["program"]["receives"] == len(server["program"]["sends"])
        assert server["program"]["receives"] == len(client["program"]["sends"])
        assert client["program"]["closes"] == "second" and "closes" not in server["program"]
        assert (call["templates"]["tg_name"], call["pid_input"]) == ("trial-0", "csit-0")
    order = [call["call"] for call in calls if call["call"] in {"load_profile", "start", "stop"}]
    assert order == ["load_profile"] * 2 + ["start"] * 2 + ["stop"] * 2, "all begin together"
    assert not any(call["block"] for call in calls if call["call"] == "stop"), "the next trial has another profile"


def test_what_does_not_end_is_waited_for_only_for_a_while(tmp_path: Path) -> None:
    report, calls = run(tmp_path, lost=3, reset=2, repeated=1, errors=7)
    for row in report.counts:
        assert (row.attempted, row.connected, row.dropped, row.repeated) == (100, 97, 2, 1)
        assert established(row) == 94
        assert row.errors == {"client: err_no_memory": 7}
    assert calls[-1]["call"] == "stop" and calls[-1]["block"], "what repeats packets has ended"


def test_connections_that_close_after_a_pause_have_not_failed(tmp_path: Path) -> None:
    report, _ = run(tmp_path, rest_s=2.0, pause_s=0.1)
    assert [established(row) for row in report.counts] == [100, 100]


def test_a_server_that_is_too_slow_is_stopped(tmp_path: Path) -> None:
    report, _ = run(tmp_path, most_s=0.2, speed=0.1)
    assert all(0 < row.attempted < 50 for row in report.counts)


def test_a_refusal_of_the_server_has_its_words(tmp_path: Path) -> None:
    with pytest.raises(CsitError, match="TRex: TRexError: the profile has no flows"):
        run(tmp_path, refused=True)


def test_the_highest_rate_is_looked_for_until_connections_fail() -> None:
    tried: list[float] = []

    def answered(rate_cps: float) -> bool:
        tried.append(rate_cps)
        return rate_cps < 1000

    found = highest(answered, 50_000.0, instances=2)
    assert tried == [500.0, 750.0, 1125.0]
    assert (found.search_pps, found.offered_pps) == (1500.0, 2 * 1.5 * 1125.0)
    assert highest(lambda _: True, 600.0, instances=1).offered_pps == 600.0, "no more can be asked for"
    assert highest(lambda _: False, 50_000.0, instances=1).search_pps == 750.0
