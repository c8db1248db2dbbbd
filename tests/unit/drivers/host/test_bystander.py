"""Those who watch stay on the CPU that they are given, and say so."""

import os
import threading

from resources.libraries.python.drivers.host.cpu.observer_affinity import stay_on, took, where


def test_a_thread_stays_on_its_cpu_and_others_do_not_follow() -> None:
    before = os.sched_getaffinity(0)
    cpu = min(before)
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.extend([stay_on(cpu), os.sched_getaffinity(0)]))
    thread.start()
    thread.join()
    assert found == [True, {cpu}]
    assert os.sched_getaffinity(0) == before


def test_a_cpu_that_is_not_there_leaves_the_thread_free() -> None:
    before = os.sched_getaffinity(0)
    assert not stay_on(1 << 14)
    assert not stay_on(None)
    assert os.sched_getaffinity(0) == before


def test_place_and_time_are_words() -> None:
    assert where(3) == "on CPU 3"
    assert where(None) == "on any CPU"
    assert took(0.002, 4.0) == "0.05 % of a CPU's time"
