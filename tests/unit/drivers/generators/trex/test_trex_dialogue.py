"""The exchange with TRex's client: our script runs for real, as a process, against a stand-in for TRex's library.

This proves what our script asks of the library, in which order and with which values, and that its answers and all
that can go wrong with them arrive as records or as one clear error. It does not prove that a real TRex does what the
stand-in does: that is for the integration test, which needs one.
"""

import ast
import sys
from pathlib import Path
from typing import Any

import pytest

from resources.libraries.python.drivers.generators.trex import client_process
from resources.libraries.python.drivers.generators.trex.client import Client
from resources.libraries.python.drivers.generators.trex.profile import checksum_of, streams
from resources.libraries.python.drivers.generators.trex.results import trial_result
from resources.libraries.python.drivers.generators.trex.wire import OpenedPorts, OpenPorts, Report, RunTrial
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.model.request.frames import traffic_profile
from tests.builders import shell_program
from tests.unit.drivers.generators.trex.stand_in import B64, IMIX, StandIn, plan, running

PLAN = plan()
ANSWER_S = 60.0
"""A deadline that nothing here comes near."""
PORTS = {"csg1p1": 0, "csg1p2": 1}


def open_order(folder: Path, within_s: float = 5.0, ports: int = 2) -> OpenPorts:
    return OpenPorts(directory=str(folder), ports=ports, within_s=within_s)


def order(trial: Trial, most_s: float = 5.0, most_lost: int | None = None) -> RunTrial:
    made = tuple(streams(PLAN.flows, PORTS, trial, traffic_profile()))
    return RunTrial(streams=made, duration_s=trial.duration_s, most_s=most_s, most_lost=most_lost)


def opened(client: Client, folder: Path) -> OpenedPorts:
    return client.ask(open_order(folder), OpenedPorts, "the server's answer", ANSWER_S)


def run(
    folder: Path, trial: Trial, *, most_s: float = 5.0, most_lost: int | None = None, **scenario: Any
) -> TrialResult:
    """One trial in a scenario, from the order to the result."""
    StandIn(folder, **scenario)
    with running(folder) as client:
        opened(client, folder)
        report = client.ask(order(trial, most_s, most_lost), Report, "a trial's report", ANSWER_S)
    return trial_result(trial, report, PLAN.flows, "2026-11-21T00:00:00+00:00", 1.0)


def trial(load_pps: float = 20_000.0, duration_s: float = 0.2, probe_pps: float = 0.0, frame: Frame = B64) -> Trial:
    return Trial(load_pps=load_pps, duration_s=duration_s, frame=frame, probe_pps=probe_pps)


def test_the_script_keeps_to_what_the_oldest_python_knows() -> None:
    tree = ast.parse(Path(client_process.__file__).read_text(encoding="utf-8"), feature_version=(3, 6))
    nodes = list(ast.walk(tree))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    known = {"importlib", "json", "os", "platform", "signal", "sys", "time", "typing"}
    assert {name.split(".")[0] for name in names} <= known
    # Generic built-in types and unions are evaluated where they are not quoted, which old versions cannot do.
    hints = [node.annotation for node in nodes if isinstance(node, ast.arg) and node.annotation]
    assert not [hint for hint in hints if "[" in ast.unparse(hint) and not isinstance(hint, ast.Constant)]


def test_it_says_what_the_server_is(tmp_path: Path) -> None:
    library = StandIn(tmp_path, refusals=2)
    with running(tmp_path) as client:
        answer = opened(client, tmp_path)
        assert client.problem() == ""
    assert (answer.version, answer.drivers, answer.counters) == ("v3.08", ("net_af_packet",), 1023)
    assert answer.python == ".".join(map(str, sys.version_info[:3]))
    asked = library.calls()
    assert [call["call"] for call in asked] == ["STLClient", "connect", "reset", "set_global_cfg", "set_port_attr"]
    # In seconds: the library's documentation says otherwise.
    assert asked[3]["sched_max_stretch"] == 0.05
    assert asked[4] == {"call": "set_port_attr", "ports": [0, 1], "promiscuous": True}


def test_ports_of_nics_are_used_when_they_have_a_link(tmp_path: Path) -> None:
    """Links of 25 and 100 Gb/s are negotiated for seconds: packets of the first trial would all be lost."""
    library = StandIn(tmp_path, driver="net_ice", looks_without_link=4)
    with running(tmp_path) as client:
        opened(client, tmp_path)
    assert [call["port"] for call in library.calls() if call["call"] == "get_port_attr"] == [0, 1, 1, 1, 1]


def test_a_port_without_a_link_is_named(tmp_path: Path) -> None:
    StandIn(tmp_path, driver="net_mlx5", looks_without_link=10_000)
    order = open_order(tmp_path).model_copy(update={"links_within_s": 0.3})
    with running(tmp_path) as client, pytest.raises(CsitError, match=r"no link after 0 s on ports 1 of 2"):
        client.ask(order, OpenedPorts, "the server's answer", ANSWER_S)


def test_what_a_trial_asks_of_the_library(tmp_path: Path) -> None:
    library = StandIn(tmp_path)
    with running(tmp_path) as client:
        opened(client, tmp_path)
        client.ask(order(trial(load_pps=24_000, probe_pps=100, frame=IMIX)), Report, "a report", ANSWER_S)
    calls = [call for call in library.calls() if call["call"] not in ("get_pgid_stats", "get_stats")][5:]
    names = [call["call"] for call in calls]
    assert names == ["remove_all_streams", "add_streams", "add_streams", "clear_stats", "start", "stop"]
    # No multiplier at all: rates are in the streams, and none is rounded.
    assert calls[4] == {"call": "start", "ports": [0, 1], "duration": 0.2, "force": True}
    for call in calls[1:3]:
        made = call["streams"]
        load, probes = made[:3], made[3:]
        assert [each["mode"]["pps"] for each in load] == pytest.approx([7000, 4000, 1000])
        assert [each["mode"]["pps"] for each in probes] == pytest.approx([700 / 12, 400 / 12, 100 / 12])
        assert {each["flow_stats"]["kind"] for each in load} == {"STLFlowStats"}
        assert {each["flow_stats"]["kind"] for each in probes} == {"STLFlowLatencyStats"}
        assert len({each["flow_stats"]["pg_id"] for each in load}) == 1
        assert len({each["flow_stats"]["pg_id"] for each in made}) == 4
        # Addresses are those of the packets: the port has one pair for all flows that leave there.
        assert all((each["mac_src_override_by_pkt"], each["mac_dst_override_mode"]) == (True, 1) for each in made)
        packets = [bytes.fromhex(each["packet"]["pkt_buffer"]) for each in made]
        assert [len(packet) + 4 for packet in packets] == [64, 570, 1518] * 2
        assert all(checksum_of(packet[14:34]) == 0 for packet in packets)
        program = load[0]["packet"]["vm"]
        variable, write, mend = program["of"][0]
        assert (variable["max_value"] - variable["min_value"] + 1, variable["op"]) == (254, "inc")
        assert program["cache_size"] == 254
        assert (write["pkt_offset"], mend["offset"]) == (26, 14)
        assert probes[0]["packet"]["vm"]["cache_size"] is None
    assert {packet["call"] for packet in library.calls()} & {"set_service_mode", "set_l2_mode", "set_l3_mode"} == set()


@pytest.mark.parametrize(
    ("asked", "scenario", "counts", "loss_ratio"),
    [
        ({}, {"one_more": 1}, (4002, 4002), 0.0),
        ({}, {"forwarded": 0.75}, (4000, 3000), 0.25),
        ({"load_pps": 0}, {}, (0, 0), None),
    ],
)
def test_every_packet_is_counted_and_loss_is_the_systems(
    tmp_path: Path, asked: dict[str, Any], scenario: dict[str, Any], counts: tuple[int, int], loss_ratio: float | None
) -> None:
    result = run(tmp_path, trial(**asked), **scenario)
    assert (result.sent, result.received, result.loss_ratio) == (*counts, loss_ratio)
    assert (result.generator_limited, result.note, result.offered_duration_s) == (False, None, 0.2)
    assert [flow.sent for flow in result.flows] == [counts[0] // 2] * 2


def test_probes_alone(tmp_path: Path) -> None:
    result = run(tmp_path, trial(load_pps=0, duration_s=0.5, probe_pps=100), histogram={"500": 40, "10": 10})
    assert (result.sent, result.loss_ratio) == (0, None)
    assert [row.sent for row in result.latency] == [50, 49]
    assert result.latency[0].p50_ns == 600_000
    assert not result.generator_limited


def test_stretched_sending_is_the_generators_fault(tmp_path: Path) -> None:
    result = run(tmp_path, trial(), stretch=10.0, cpu=48.0)
    assert result.generator_limited
    assert result.sent == 4000
    # The last look at which packets were missing, just before the end after 2 s.
    assert result.offered_duration_s == pytest.approx(2.0, abs=0.01)
    assert result.offered_pps == pytest.approx(2000, abs=10)
    assert "longer than 0.2 s to send the load, at 48 % of its core" in result.note


def test_sending_that_does_not_end_is_ended(tmp_path: Path) -> None:
    result = run(tmp_path, trial(), most_s=0.4, stretch=100.0)
    assert result.generator_limited and "of 4,000 packets" in result.note
    assert result.offered_duration_s == pytest.approx(0.4, abs=0.01), "and not the 20 s that it would take"
    assert result.sent == pytest.approx(80, abs=2)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [({"queue_full": 7}, "queues were full 7 times"), ({"ierrors": 3}, "dropped 6 packets that had come back")],
)
def test_the_generators_own_losses_are_not_the_systems(tmp_path: Path, wrong: dict[str, int], says: str) -> None:
    result = run(tmp_path, trial(), forwarded=0.99, **wrong)
    assert result.generator_limited and says in result.note


def test_a_lost_trial_ends_early(tmp_path: Path) -> None:
    result = run(tmp_path, trial(duration_s=2.0), most_lost=100, forwarded=0.5)
    assert result.aborted
    assert not result.generator_limited
    assert result.offered_duration_s == pytest.approx(0.3, abs=0.01), "the first look after 0.1 s of loss"
    assert result.loss_ratio == pytest.approx(0.5, abs=0.01)
    assert result.offered_pps == pytest.approx(20_000, rel=0.01)


def test_a_trial_without_loss_runs_to_its_end_although_it_is_watched(tmp_path: Path) -> None:
    result = run(tmp_path, trial(duration_s=0.5), most_lost=0)
    assert (result.aborted, result.sent) == (False, 10_000)


def test_a_server_that_died_is_named_as_the_reason(tmp_path: Path) -> None:
    StandIn(tmp_path)
    died = "TRex was killed by SIGKILL"
    with running(tmp_path, server_problem=died) as client, pytest.raises(CsitError, match=died):
        opened(client, tmp_path)


def test_a_client_that_died_is_reported_with_its_last_output(tmp_path: Path) -> None:
    StandIn(tmp_path, dies=True)
    with running(tmp_path) as client:
        opened(client, tmp_path)
        with pytest.raises(CsitError, match=r"TRex's client was killed by SIGTERM; it said last: the library may"):
            client.ask(order(trial()), Report, "a report", ANSWER_S)
        assert "was killed by SIGTERM" in client.problem()


def test_a_missing_server_is_reported_after_the_deadline(tmp_path: Path) -> None:
    StandIn(tmp_path, refusals=1000)
    with running(tmp_path) as client, pytest.raises(CsitError, match="failed to get response"):
        client.ask(open_order(tmp_path, within_s=0.3), OpenedPorts, "the server", ANSWER_S)


@pytest.mark.parametrize(
    ("says", "complaint"),
    [
        ("Segmentation fault", "no JSON: Segmentation fault"),
        ("[1, 2]", "no JSON object"),
        ('{"version": "v3.08"}', "invalid answer: python: is missing"),
        (
            '{"version": "v3.08", "python": "3", "drivers": [], "counters": -1}',
            "invalid answer: counters: -1 is below the minimum of 0",
        ),
    ],
)
def test_nonsense_is_reported_as_such(tmp_path: Path, says: str, complaint: str) -> None:
    program = shell_program(tmp_path / "python", f"read line\necho '{says}'\nread line")
    with running(tmp_path, python=str(program)) as client, pytest.raises(CsitError, match=complaint):
        opened(client, tmp_path)
