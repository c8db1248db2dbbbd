"""Counters, latencies, reports."""

import base64
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram

from resources.libraries.python.dialogue import line_of
from resources.libraries.python.drivers.generators.builtin import arrivals, counters, driver, wire
from resources.libraries.python.drivers.generators.builtin import process as module
from resources.libraries.python.errors import CommandFailed, NotReady, Unsupported
from resources.libraries.python.model.core_map import Thread, ThreadRole
from resources.libraries.python.model.measurements.trial import Trial, TrialResult
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.request.traffic import Protocol
from resources.libraries.python.planning.plan import make_plan
from tests.builders import cell_of, cpus, flow_of, plan_of
from tests.unit.planning.labs import lab

FRAME = frame("64B")


class Clock:
    """Time that passes by sleeping only."""

    now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.mark.parametrize(
    ("readings", "options", "expected"),
    [
        ([(20,)], {}, ((20,), 0.0)),  # all came
        ([(1,), (2,), (3,), (4,), *[(5,)] * 1000], {}, ((5,), 0.001)),
        ([*[(0, 4)] * 60, *[(9, 4)] * 1000], {"before": (0, 0)}, ((9, 4), 0.06)),  # nothing had reached a port yet
        ([*[(0, 4)] * 60, *[(9, 4)] * 1000], {"before": (1, 0)}, ((0, 4), 0.0)),  # that one has moved
        ([*[(4,)] * 60, *[(9,)] * 1000], {"quiet_s": 0.01}, ((4,), 0.0)),
        ([*[(4,)] * 60, *[(9,)] * 1000], {"quiet_s": 0.3}, ((9,), 0.06)),
    ],
)
def test_settling_waits_for_the_counters_to_stop(
    readings: list[Any], options: dict[str, Any], expected: tuple[Any, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counters, "time", Clock())
    settled = counters.settle(iter(readings).__next__, (20,) * len(readings[0]), **options)
    assert settled == counters.FinalCounters(expected[0], True, pytest.approx(expected[1]))


def test_packets_that_came_after_a_trial_make_the_next_ones_wait_longer() -> None:
    lateness = counters.QuietTime()
    first = lateness.quiet_s
    assert not lateness.begin((0, 0))
    lateness.end((90, 100), (100, 100), counters.FinalCounters((90, 100), True, 0.001))
    assert not lateness.begin((92, 100)), "a few stray packets are tolerated"
    assert lateness.quiet_s == first
    assert lateness.begin((100, 100))
    assert lateness.quiet_s == 2 * first
    lateness.end((103, 90), (100, 100), counters.FinalCounters((203, 190), True, 0.001))
    assert lateness.quiet_s == 4 * first
    for _ in range(9):
        lateness.end((200, 0), (100, 100), counters.FinalCounters((203, 190), True, 0.001))
    assert lateness.quiet_s == 0.4


def test_percentiles_are_samples_of_stamped_probes_and_the_histogram_agrees() -> None:
    sent = np.array([1000, 0, 3000, 4000, 5000], dtype=np.int64)
    received = np.array([1500, 2500, 0, 3999, 5100], dtype=np.int64)
    assert arrivals.latencies_ns(sent, received).tolist() == [100, 500]
    assert arrivals.latency_report(np.zeros(0, dtype=np.int64)) is None
    report = arrivals.latency_report(np.arange(1, 1001, dtype=np.int64) * 1000)
    assert (report.min_ns, report.max_ns, report.mean_ns) == (1000, 1_000_000, 500_500.0)
    assert (report.p50_ns, report.p90_ns, report.p99_ns, report.p999_ns) == (500_000, 900_000, 990_000, 999_000)
    base64.b64decode(report.histogram, validate=True)
    histogram = HdrHistogram.decode(report.histogram)
    assert histogram.get_total_count() == 1000
    assert histogram.get_value_at_percentile(90) == pytest.approx(900_000, rel=0.001)


def report(sent: int, planned: int, offered_s: float = 1.0, unstamped: int = 0) -> wire.TrialReport:
    flow = wire.FlowReport(sent, sent - 1, 1, 10, 9, None, unstamped)
    return wire.TrialReport(planned, offered_s, 1.0, 0.0, settled=True, flows=(flow,))


def result_of(one: wire.TrialReport, load_pps: float, probe_pps: float = 0.0) -> TrialResult:
    trial = Trial(load_pps=load_pps, duration_s=1.0, frame=FRAME, probe_pps=probe_pps)
    return driver.trial_result(trial, [one], [(flow_of(), one.flows[0])], "now", 1.0)


def test_reports_and_specifications_survive_the_wire() -> None:
    values = arrivals.latency_report(np.array([5], dtype=np.int64))
    whole = wire.TrialReport(1, 1.0, 1.0, 0.0, True, (wire.FlowReport(1, 1, 0, 1, 1, values, 0),))
    for before in (whole, report(5, 5)):
        assert driver.trial_report(json.loads(line_of(asdict(before)))) == before
    flow = wire.FlowSpec("tg-1", "tg-2", "02:00:00:00:00:01", "02:00:00:00:00:02", "10.1.0.0", 16, "20.1.0.1")
    worker = wire.WorkerSpec("csit-generator", (2, 3), alone=True, flows=(flow, flow))
    assert wire.worker_spec(json.loads(line_of(asdict(worker)))) == worker


@pytest.mark.parametrize(
    ("sent", "offered_s", "limited"),
    [(100_000, 1, False), (99_901, 1, False), (99_890, 1, True), (100_000, 1.0011, False), (100_000, 1.002, True)],
)
def test_what_makes_a_trial_generator_limited(sent: int, offered_s: float, limited: bool) -> None:
    result = result_of(report(sent, 100_000, offered_s), 100_000)
    assert result.generator_limited is limited
    assert ("generator" in (result.note or "").replace("generator's ports", "")) is limited


def test_probes_without_stamps_are_said_not_counted() -> None:
    result = result_of(report(0, 0, unstamped=4), 0, probe_pps=10)
    assert not result.generator_limited
    assert "4 received probes have no usable time stamps" in result.note
    assert (result.latency[0].sent, result.latency[0].received, result.latency[0].p50_ns) == (10, 9, None)


@pytest.mark.parametrize(
    ("pauses_s", "quiet_s"), [((0.0,) * 4, 0.005), ((0.0, 0.002) * 2, 0.01), ((0.0, 0.2) * 2, 0.025)]
)
def test_the_wait_at_the_end_is_learned_from_what_the_system_has_shown(
    pauses_s: tuple[float, ...], quiet_s: float
) -> None:
    lateness = counters.QuietTime()
    for pause_s in pauses_s:
        assert lateness.quiet_s == 0.025
        lateness.end((90,), (100,), counters.FinalCounters((90,), True, pause_s))
    assert lateness.quiet_s == quiet_s
    assert lateness.begin((100,)), "packets came later than that"
    assert lateness.quiet_s == 0.05


class Worker:
    """A worker that sends nothing."""

    def __init__(self) -> None:
        self.pid = 1
        self.told: list[dict[str, Any]] = []
        self.closed = False

    def send(self, record: dict[str, Any]) -> None:
        self.told.append(record)

    def answer(self, *_: object) -> dict[str, Any]:
        return {"sending": "a stub", "fallback": None}

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> list[Worker]:
    made: list[Worker] = []

    def start() -> Worker:
        made.append(Worker())
        return made[-1]

    monkeypatch.setattr(driver, "WorkerProcess", start)
    monkeypatch.setattr(driver, "first_to_speak", lambda waiting, *_: waiting[0])
    return made


@pytest.mark.parametrize("cores", [2, 16])
def test_prepared_workers_are_those_that_start_and_are_ended_without_a_start(cores: int, workers: list[Worker]) -> None:
    generator = driver.BuiltInGenerator(plan_of("local", "CSC", 2, cores=cpus(cores)))
    generator.prepare()
    generator.prepare()
    prepared = list(workers)
    assert prepared and not any(worker.told for worker in prepared)
    generator.start()
    assert workers == prepared and all(worker.told for worker in prepared)
    generator.stop()
    generator.prepare()
    generator.stop()
    assert len(workers) == 2 * len(prepared) and all(worker.closed for worker in workers)
    generator.start()
    assert len(workers) == 3 * len(prepared), "none that was ended is used"
    generator.stop()


@pytest.mark.usefixtures("workers")
def test_losses_of_tcp_segments_and_icmp_are_refused() -> None:
    generator = driver.BuiltInGenerator(plan_of("local", "CSC", 1, cores=cpus(2)))
    generator.start()
    asked = Trial(load_pps=4000, duration_s=1, frame=FRAME, protocol=Protocol.TCP)
    with pytest.raises(Unsupported, match="losses and timelines number UDP datagrams, not TCP segments"):
        generator.run(asked.model_copy(update={"count_losses": True}))
    with pytest.raises(Unsupported, match="the built-in generator sends no ICMP"):
        generator.run(asked.model_copy(update={"protocol": Protocol.ICMP}))
    generator.stop()


def test_cpus_of_another_machine_do_not_disturb_the_generator() -> None:
    topology = lab(1, discriminator="mac", cores=32, tg_cores=32, containers="linux_router")
    plan = make_plan(topology, cell_of("CSC", 2, 1), {}).model_copy(update={"flows": ()})
    (cpu, *_), others = plan.cores.cpus("generator"), {each.cpu for each in plan.cores.on(None)}
    assert cpu in others, "both machines must have a thread on a CPU of the same number"
    assert driver.BuiltInGenerator(plan)._alone
    beside = Thread(owner="vswitch", role=ThreadRole.DATA, index=9, cpu=cpu, machine="TG")
    cores = plan.cores.model_copy(update={"threads": (*plan.cores.threads, beside)})
    assert not driver.BuiltInGenerator(plan.model_copy(update={"cores": cores}))._alone


@pytest.fixture
def worker() -> Iterator[module.WorkerProcess]:
    with closing(module.WorkerProcess("json.tool")) as process:  # reads its input
        yield process


def test_silence_ends_in_time_with_the_workers_number(worker: module.WorkerProcess) -> None:
    with pytest.raises(NotReady, match=rf"after 0\.1 s; last seen: nothing from worker {worker.pid}; "):
        worker.answer("answer", 0.1)
    with pytest.raises(NotReady, match=r"not ready after 0\.0 s"):
        module.first_to_speak([worker], "answer", -1.0)


def test_a_stopped_one_is_reported_long_before_the_deadline_and_ended(
    worker: module.WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LOOK_S", 0.05)
    os.kill(worker.pid, signal.SIGSTOP)
    begin = time.monotonic()
    with pytest.raises(NotReady, match=f"worker {worker.pid} is stopped"):
        worker.answer("answer", 600.0)
    assert time.monotonic() - begin < 300.0
    worker.close()
    assert worker.ended


def test_the_exit_of_a_worker_is_reported_with_its_last_output(worker: module.WorkerProcess) -> None:
    worker.send({"a": 1})
    os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(CommandFailed, match="was killed by SIGKILL"):
        worker.answer("answer", 60.0)
