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
import yaml

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.generators.trex import Trex, client_process, config, driver
from resources.libraries.python.drivers.generators.trex.driver import Client, interpreter, missing
from resources.libraries.python.drivers.generators.trex.profile import checksum_of, streams
from resources.libraries.python.drivers.generators.trex.results import trial_result
from resources.libraries.python.drivers.generators.trex.wire import OpenedPorts, OpenPorts, Report, RunTrial
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.core_map import Thread, ThreadRole
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.plan import Nic, Plan
from resources.libraries.python.model.request.cell import Frame
from resources.libraries.python.model.request.frames import traffic_profile
from resources.libraries.python.model.testbed.attachment import Attachment
from resources.libraries.python.planning.names import GENERATOR
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.testbed.deployment import cell
from tests.builders import cell_of, finished, shell_program
from tests.unit.drivers.generators.trex.stand_in import B64, IMIX, StandIn, plan, running
from tests.unit.planning.labs import lab

PLAN = plan()
ANSWER_S = 60.0  # a deadline that nothing here comes near
PORTS = {"csg1p1": 0, "csg1p2": 1}


def order(trial: Trial, most_s: float = 5.0, most_lost: int | None = None) -> RunTrial:
    made = tuple(streams(PLAN.flows, PORTS, trial, traffic_profile()))
    return RunTrial(streams=made, duration_s=trial.duration_s, most_s=most_s, most_lost=most_lost)


def opened(client: Client, folder: Path, **changes: float) -> OpenedPorts:
    asked = OpenPorts(directory=str(folder), ports=2, within_s=5.0).model_copy(update=changes)
    return client.ask(asked, OpenedPorts, "the server's answer", ANSWER_S)


def run(folder: Path, trial: Trial, most_s: float = 5.0, most_lost: int | None = None, **scenario: Any) -> TrialResult:
    """One trial in a scenario, from the order to the result."""
    StandIn(folder, **scenario)
    with running(folder) as client:
        opened(client, folder)
        report = client.ask(order(trial, most_s, most_lost), Report, "a trial's report", ANSWER_S)
    return trial_result(trial, report, PLAN.flows, "2026-11-21", 1.0)


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
        ({"load_pps": 50_000}, {"most_lost": 0}, (10_000, 10_000), 0.0),  # watched, and without loss
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


@pytest.mark.parametrize(
    ("scenario", "asked", "problem", "says"),
    [
        ({"driver": "net_mlx5", "looks_without_link": 10_000}, {"links_within_s": 0.3}, "", "on ports 1 of 2"),
        ({"refusals": 1000}, {"within_s": 0.3}, "", "failed to get response"),
        ({}, {}, "TRex was killed by SIGKILL", "TRex was killed by SIGKILL"),
    ],
)
def test_a_server_that_cannot_be_used_is_named(
    tmp_path: Path, scenario: dict[str, Any], asked: dict[str, float], problem: str, says: str
) -> None:
    StandIn(tmp_path, **scenario)
    with running(tmp_path, server_problem=problem) as client, pytest.raises(CsitError, match=says):
        opened(client, tmp_path, **asked)


def test_a_client_that_died_is_reported_with_its_last_output(tmp_path: Path) -> None:
    StandIn(tmp_path, dies=True)
    with running(tmp_path) as client:
        opened(client, tmp_path)
        with pytest.raises(CsitError, match=r"TRex's client was killed by SIGTERM; it said last: the library may"):
            client.ask(order(trial()), Report, "a report", ANSWER_S)
        assert "was killed by SIGTERM" in client.problem()


@pytest.mark.parametrize(
    ("says", "complaint"),
    [("Segmentation fault", "no JSON: Segmentation"), ('{"version": "v3.08"}', "invalid answer: python: is missing")],
)
def test_nonsense_is_reported_as_such(tmp_path: Path, says: str, complaint: str) -> None:
    program = shell_program(tmp_path / "python", f"read line\necho '{says}'\nread line")
    with running(tmp_path, python=str(program)) as client, pytest.raises(CsitError, match=complaint):
        opened(client, tmp_path)


def configuration(asked: Plan, *, largest: int = 1518, settings: Trex | None = None) -> dict[str, Any]:
    used = settings or Trex()
    table = config.table_of(asked, used)
    placement = config.place(asked, len(table.ports) // 2, dpdk=table.dpdk, queues=table.queues)
    text = config.yaml_of(table, placement, 0, largest_frame_bytes=largest, memory_mb=used.memory_mb)
    # One line for each value: what the server's old parser surely reads.
    assert all(line[:2] in ("- ", "  ") and ": " in line for line in text.splitlines())
    (entry,) = yaml.safe_load(text)
    return dict(entry)


def platform(main: int, latency: int, *threads: list[int]) -> dict[str, Any]:
    pairs = [{"socket": 0, "threads": row} for row in threads]
    return {"master_thread_id": main, "latency_thread_id": latency, "dual_if": pairs}


def with_threads(asked: Plan, *cpus: int, main: tuple[int, ...] = ()) -> Plan:
    others = [thread for thread in asked.cores.threads if thread.owner != GENERATOR]
    mine = [Thread(owner=GENERATOR, role=ThreadRole.DATA, index=i, cpu=cpu) for i, cpu in enumerate(cpus)]
    control = [Thread(owner=GENERATOR, role=ThreadRole.MAIN, index=i, cpu=cpu) for i, cpu in enumerate(main)]
    return asked.model_copy(update={"cores": asked.cores.model_copy(update={"threads": (*others, *mine, *control)})})


def on_nics(
    asked: Plan, *, shared: bool = False, attachment: Attachment = Attachment.DPDK, queues: int | None = None
) -> Plan:
    """The plan with a NIC at each of the generator's ports; where it is shared all instances have the same two."""
    links, index = [], 0
    for link in asked.links:
        if link.a.owner != GENERATOR:
            links.append(link)
            continue
        slot = index % 2 if shared else index
        address = f"0000:18:00.{slot}"
        nic = Nic(port=f"port{slot + 1}", pci_address=address, numa_node=0, attachment=attachment, rx_queues=queues)
        links.append(link.model_copy(update={"a": link.a.model_copy(update={"nic": nic})}))
        index += 1
    flows = tuple(flow.model_copy(update={"vlan": 100 + flow.instance if shared else None}) for flow in asked.flows)
    return asked.model_copy(update={"links": tuple(links), "flows": flows})


def test_software_mode_with_one_cpu_takes_turns() -> None:
    entry = configuration(plan(rows=2))
    assert (entry["low_end"], entry["port_limit"], "platform" in entry) == (True, 4, False)
    devices = [dict(word.partition("=")[::2] for word in row.split(","))["iface"] for row in entry["interfaces"]]
    assert devices == ["csg1p1", "csg1p2", "csg2p1", "csg2p2"]
    # The server's own rings have 256 slots, and lose packets.
    assert all("framesz=2048,framecnt=16384" in row for row in entry["interfaces"])
    macs = entry["port_info"]
    assert [row["src_mac"] for row in macs] == [f"02:00:00:00:0{i}:0{p}" for i in (1, 2) for p in (1, 2)]
    assert len({row["dest_mac"] for row in macs}) == 4
    jumbo = configuration(plan(), largest=9000)["interfaces"]
    assert all("blocksz=593920,framesz=9280,framecnt=4096" in row for row in jumbo)
    assert 593_920 % 9280 == 593_920 % 4096 == 0


def test_threads_have_a_cpu_each_where_there_are_enough() -> None:
    entry = configuration(with_threads(plan(rows=2), 8, 9, 10, main=(7,)))
    assert entry["platform"] == platform(7, 8, [9], [10])
    assert "low_end" not in entry


@pytest.mark.parametrize(
    ("rows", "queues", "cpus", "threads"),
    [
        (1, 64, 7, [[3, 4, 5, 6, 7]]),
        (2, 64, 7, [[3, 4], [5, 6]]),  # the same number for both: one CPU is left
        (1, 2, 7, [[3, 4]]),
        (1, None, 7, [[3]]),
    ],
)
def test_sending_threads_are_as_many_for_each_pair_as_cpus_and_queues_allow(
    rows: int, queues: int | None, cpus: int, threads: list[list[int]]
) -> None:
    entry = configuration(with_threads(on_nics(plan(rows=rows), queues=queues), *range(1, cpus + 1)))
    assert entry["c"] == len(threads[0])
    assert entry["platform"] == platform(1, 2, *threads)


def test_as_many_cores_send_as_the_topology_says() -> None:
    """Control and receiving have cores beside them where the machine has any left."""
    topology = lab(discriminator="mac", tg_cores=16)
    tg = topology.tg.model_copy(update={"generator": topology.tg.generator.model_copy(update={"cores": 4})})
    topology = topology.model_copy(update={"nodes": {**topology.nodes, "TG": tg}})
    entry = configuration(make_plan(topology, cell_of(nf_chains=2), {}))
    assert (entry["c"], entry["platform"]) == (4, platform(5, 6, [1, 2, 3, 4]))


def test_dpdk_by_pci_address_and_memory_and_software_mode_on_a_nic_when_asked() -> None:
    entry = configuration(with_threads(on_nics(plan()), 1, 2, 3), settings=Trex(memory_mb=2048))
    assert entry["interfaces"] == ["0000:18:00.0", "0000:18:00.1"]
    assert entry["limit_memory"] == "2048"
    table = config.table_of(on_nics(plan(), attachment=Attachment.KERNEL), Trex(ports="af_packet"))
    assert not table.dpdk and [port.device for port in table.ports] == ["csg1p1", "csg1p2"]


def test_vlans_share_ports() -> None:
    asked = on_nics(plan(rows=4), shared=True)
    table = config.table_of(asked, Trex())
    assert len(table.ports) == 2
    ways = {(table.number[flow.tx_interface], table.number[flow.rx_interface]) for flow in asked.flows}
    assert ways == {(0, 1), (1, 0)}


@pytest.mark.parametrize(
    ("asked", "settings", "why"),
    [
        (plan(rows=17), Trex(), "34 ports for the generator, TRex takes 32"),
        (plan(), Trex(ports="dpdk"), "by DPDK or none, and csg1p1 is a port of the kernel"),
        (on_nics(plan()), Trex(), "needs 3 CPUs for 1 pair of ports .*, the plan has 1 for the generator"),
    ],
)
def test_ports_that_do_not_do(asked: Plan, settings: Trex, why: str) -> None:
    with pytest.raises(Unsupported, match=why):
        configuration(asked, settings=settings)


def test_the_first_load_asked_for_fills_the_cables(monkeypatch: pytest.MonkeyPatch) -> None:
    topology = lab(1, 2, discriminator="vlan", trex={"ports": "af_packet"})
    asked, lock = make_plan(topology, cell_of(nf_chains=2), {}), MachineLock()
    generator = driver.TrexGenerator(topology.tg, DriverContext(asked, Fabric(asked, lock, node="TG"), lock, 1518))
    loads: list[float] = []
    monkeypatch.setattr(generator, "run", lambda each: loads.append(each.load_pps) or finished(each, (0, 0)))
    generator.highest_loads(Trial(load_pps=1.0, duration_s=1.0, frame=B64, purpose="maximum"))
    assert loads[0] == pytest.approx(2 * 10e9 / 8 / 88), "both ways over a cable that two instances share"


@pytest.mark.parametrize("duration_s", [0.1, 60.0, 600.0])
def test_a_generator_that_falls_behind_is_named_before_the_deadline_of_the_trial(duration_s: float) -> None:
    """Else the trial of an energy or soak measurement ends as a broken system that says nothing."""
    assert driver.most_s(duration_s) + driver._ANSWER_S < duration_s + cell._TRIAL_S
    assert driver.most_s(duration_s) > duration_s * 1.04


def test_arguments_are_quiet_and_exact(tmp_path: Path) -> None:
    row = config.arguments(tmp_path, tmp_path / "cfg.yaml", mellanox=True)
    assert row[0] == str(tmp_path / "_t-rex-64")
    assert {"--hdrh", "--no-scapy-server", "--no-key", "--mlx5-so"} <= set(row)
    assert row[row.index("--iom") + 1] == "0"
    assert "--mlx5-so" not in config.arguments(tmp_path, tmp_path / "cfg.yaml", mellanox=False)


def test_missing_parts_are_reported_with_the_fix_and_nothing_that_a_topology_names_is_run(tmp_path: Path) -> None:
    settings = Trex(directory=str(tmp_path))
    (problem,) = missing(settings)
    assert f"TRex is not at trex.directory {tmp_path}" in str(problem)
    assert "trex.directory" in problem.fix
    StandIn(tmp_path)
    (tmp_path / config.PROGRAM).touch()
    assert list(missing(settings)) == []
    (problem,) = missing(settings.model_copy(update={"python": str(tmp_path / "none")}))
    assert "no Python for TRex's client library" in str(problem)
    ran = tmp_path / "ran"
    program = str(shell_program(tmp_path / "python3", f"touch {ran}"))
    assert list(missing(settings.model_copy(update={"python": program}))) == []
    assert not ran.exists()
    assert interpreter(program) and ran.exists(), "where TRex is started"
    assert interpreter("auto") is not None
    assert interpreter(str(shell_program(tmp_path / "unable", "exit 1"))) is None
