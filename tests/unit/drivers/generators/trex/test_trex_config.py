"""The server's configuration: ports in pairs, threads on planned CPUs, a file that an old parser reads."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from resources.libraries.python.drivers.context import DriverContext
from resources.libraries.python.drivers.generators.trex import config, driver
from resources.libraries.python.drivers.generators.trex.config import table_of
from resources.libraries.python.drivers.generators.trex.driver import TrexGenerator, most_s
from resources.libraries.python.drivers.generators.trex.registration import Trex
from resources.libraries.python.drivers.generators.trex.requirements import interpreter, missing
from resources.libraries.python.drivers.host.links.fabric import Fabric
from resources.libraries.python.drivers.host.ownership.ownership import MachineLock
from resources.libraries.python.errors import NotReady, Unsupported
from resources.libraries.python.model.core_map import Thread, ThreadRole
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.plan import Nic, Plan
from resources.libraries.python.model.testbed.attachment import Attachment
from resources.libraries.python.planning.names import GENERATOR
from resources.libraries.python.planning.plan import make_plan
from resources.libraries.python.testbed.deployment import cell
from tests.builders import cell_of, shell_program
from tests.unit.drivers.generators.trex.stand_in import B64, StandIn, plan
from tests.unit.planning.labs import lab


def configuration(asked: Plan, *, largest: int = 1518, settings: Trex | None = None) -> dict[str, Any]:
    used = settings or Trex()
    table = table_of(asked, used)
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
        (2, 64, 4, [[3], [4]]),
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


def test_dpdk_by_pci_address_and_memory() -> None:
    settings = Trex(memory_mb=2048)
    entry = configuration(with_threads(on_nics(plan()), 1, 2, 3), settings=settings)
    assert entry["interfaces"] == ["0000:18:00.0", "0000:18:00.1"]
    assert entry["limit_memory"] == "2048"


def test_vlans_share_ports() -> None:
    asked = on_nics(plan(rows=4), shared=True)
    table = table_of(asked, Trex())
    assert len(table.ports) == 2
    assert {(table.number[flow.tx_interface], table.number[flow.rx_interface]) for flow in asked.flows} == {
        (0, 1), (1, 0),
    }  # fmt: skip


def test_software_mode_on_a_nic_when_asked() -> None:
    table = table_of(on_nics(plan(), attachment=Attachment.KERNEL), Trex(ports="af_packet"))
    assert not table.dpdk
    assert [port.device for port in table.ports] == ["csg1p1", "csg1p2"]


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


@pytest.mark.parametrize(("word", "wire_bytes", "sharing"), [("link", 84, 1), ("vlan", 88, 2), ("mac", 84, 2)])
def test_the_first_load_asked_for_fills_the_cables(
    word: str, wire_bytes: int, sharing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    topology = lab(1, 2, discriminator=word, trex={"ports": "af_packet"})
    asked, lock = make_plan(topology, cell_of(nf_chains=2), {}), MachineLock()
    generator = TrexGenerator(topology.tg, DriverContext(asked, Fabric(asked, lock, node="TG"), lock, 1518))
    loads: list[float | None] = []

    def run(trial: Trial) -> TrialResult:
        loads.append(trial.load_pps)
        raise NotReady("traffic", 0.0, "nothing is sent here")

    monkeypatch.setattr(generator, "run", run)
    with pytest.raises(NotReady):
        generator.highest_loads(Trial(load_pps=1.0, duration_s=1.0, frame=B64, purpose="maximum"))
    # two instances, both directions, 10 Gb/s
    assert loads == [pytest.approx(4 / sharing * 10e9 / 8 / wire_bytes)]


@pytest.mark.parametrize("duration_s", [0.1, 60.0, 600.0])
def test_a_generator_that_falls_behind_is_named_before_the_deadline_of_the_trial(duration_s: float) -> None:
    """Else the trial of an energy or soak measurement ends as a broken system that says nothing."""
    assert most_s(duration_s) + driver._ANSWER_S < duration_s + cell._TRIAL_S
    assert most_s(duration_s) > duration_s * 1.04


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


def test_the_python_is_the_asked_one_or_one_that_can(tmp_path: Path) -> None:
    assert interpreter("auto") is not None
    assert interpreter(str(shell_program(tmp_path / "python3", "exit 1"))) is None
