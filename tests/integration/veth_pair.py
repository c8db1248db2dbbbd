"""A generator on the two ends of one cable, and frames captured there."""

import os
import socket
import threading

from resources.libraries.python.drivers.generators.builtin.driver import BuiltInGenerator
from resources.libraries.python.drivers.generators.builtin.kernel import enter_namespace
from resources.libraries.python.model.core_map import CoreMap, Thread, ThreadRole
from resources.libraries.python.model.measurements.trial import Direction, Trial, TrialResult
from resources.libraries.python.model.plan import Flow, Plan
from resources.libraries.python.model.request.cell import Cell, Frame, FramePart, ServiceType

NAMESPACE = f"csit-ring-{os.getpid()}"


LEFT, RIGHT = "ringa", "ringb"


B64 = Frame(name="64B", parts=(FramePart(frame_bytes=64),))


IMIX_WEIGHTS = {64: 7, 570: 4, 1518: 1}


IMIX = Frame(name="IMIX", parts=tuple(FramePart(frame_bytes=size, weight=n) for size, n in IMIX_WEIGHTS.items()))


def plan(*, cpus: tuple[int, ...] = (0,)) -> Plan:
    """One instance whose two ports are joined by a cable."""
    flows = tuple(
        Flow(
            instance=1,
            direction=direction,
            tx_interface=tx,
            rx_interface=rx,
            source_mac="02:00:00:00:00:01",
            destination_mac="02:00:00:00:00:02",
            source_ip=source,
            sources=254,
            destination_ip=destination,
        )
        for direction, tx, rx, source, destination in (
            (Direction.FORWARD, LEFT, RIGHT, "10.0.1.1", "20.0.1.1"),
            (Direction.REVERSE, RIGHT, LEFT, "20.0.1.1", "10.0.1.1"),
        )
    )
    threads = tuple(
        Thread(owner="generator", role=ThreadRole.DATA, index=index, cpu=cpu) for index, cpu in enumerate(cpus)
    )
    return Plan(
        testbed="test",
        cell=Cell(service_type=ServiceType.CSC, nf_chains=1, nf_nodes=1),
        suite_id="test",
        tags=(),
        discriminator="link",
        cores=CoreMap(
            numa_node=0,
            smt=False,
            physical=((0,), (1,)),
            threads=threads,
            cores_needed=1,
            cores_there=2,
            oversubscribed=False,
        ),
        links=(),
        segments=(),
        functions=(),
        flows=flows,
        paths=(),
    )


def undisturbed(generator: BuiltInGenerator, trial: Trial) -> TrialResult:
    """A trial in which the sender kept up with its load."""
    result = generator.run(trial)
    assert not result.generator_limited, result.note
    return result


class Capture:
    """Takes frames off an interface, by a packet socket in the namespace."""

    def __init__(self, interface: str) -> None:
        self.frames: list[bytes] = []
        self._ready = threading.Event()
        self._stop = threading.Event()
        self._interface = interface
        self._thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        enter_namespace(NAMESPACE)
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sock:
            sock.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)
            sock.bind((self._interface, 0x0800))
            sock.settimeout(0.05)
            self._ready.set()
            while True:
                try:
                    self.frames.append(sock.recv(10000))
                except TimeoutError:
                    if self._stop.is_set():
                        return

    def __enter__(self) -> "Capture":
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def captured(generator: BuiltInGenerator, trial: Trial, interface: str) -> tuple[TrialResult, Capture]:
    """A trial in which all was sent, and the frames that came out of an interface in it."""
    with Capture(interface) as capture:
        result = generator.run(trial)
    assert result.sent == round(trial.load_pps * trial.duration_s), result.note
    probes = {round(trial.probe_pps * trial.duration_s)} if trial.probe_pps else set()
    assert {row.sent for row in result.latency} == probes, result.note
    return result, capture
