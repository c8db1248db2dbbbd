"""Events at a given time: when they take place, and what cannot happen."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any, get_type_hints

import pytest

from resources.libraries.python import driver_registry
from resources.libraries.python.driver_registry import functions, vswitches
from resources.libraries.python.drivers.functions.mixed_kinds import MixedKinds, OneKind
from resources.libraries.python.drivers.host.ownership.processes import is_stopped
from resources.libraries.python.drivers.host.programs.disturbances import Disturbed, Steps, process_steps
from resources.libraries.python.drivers.host.programs.waiting import wait_until
from resources.libraries.python.errors import CsitError, Unsupported
from resources.libraries.python.model.driver import FunctionDriver, VSwitchDriver
from resources.libraries.python.model.measurements.disturbance import Disturbance, PartEvent
from tests.builders import raising

NEVER_S = 60.0
"""A deadline that nothing here comes near."""


class Part(Disturbed):
    """A part with one member, which notes what happens to it."""

    def __init__(self, fail: Exception | None = None) -> None:
        self.said: list[str] = []
        self._end = self.noting("end") if fail is None else raising(fail)

    def noting(self, word: str) -> Callable[[], None]:
        return partial(self.said.append, word)

    def steps(self, target: str, event: PartEvent) -> Steps | None:
        if target != "nf-1-1":
            return None
        if event is PartEvent.RELOAD:
            raise Unsupported("reload is not possible for nf-1-1 with its driver")
        return Steps("so and so", self.noting("begin"), self._end, self.noting("before"), self.noting("after"))


def coming(event: PartEvent = PartEvent.PAUSE, target: str = "nf-1-1", after_s: float = 0.02) -> Disturbance:
    return Disturbance(targets=(target,), event=event, after_s=after_s, hold_s=0.03)


def test_an_event_takes_place_after_its_time_and_is_prepared_before() -> None:
    part, asked_ns = Part(), time.time_ns()
    part.disturb(coming())
    assert part.said[0] == "before", "when the request returns"
    wait_until("the end of the pause", lambda: "" if "end" in part.said else "not yet", NEVER_S)
    assert "after" not in part.said, "no check beside the traffic"
    (happened,) = part.disturbed()
    assert part.said == ["before", "begin", "end", "after"]
    assert happened.began_ns - asked_ns >= 19_000_000
    assert happened.ended_ns - happened.began_ns >= 29_000_000, "the pause"
    assert happened.what == "so and so"
    assert part.disturbed() == (), "an event is reported once"


def test_several_targets_are_all_hit_before_any_is_brought_back() -> None:
    class Two(Part):
        def steps(self, target: str, event: PartEvent) -> Steps | None:
            if event is not PartEvent.RESTART or target not in ("nf-1-1", "nf-1-2"):
                return None
            return Steps(f"hit {target}", self.noting(f"begin {target}"), self.noting(f"end {target}"))

    part = Two()
    part.disturb(Disturbance(targets=("nf-1-1", "nf-1-2", "nf-9-9"), event=PartEvent.RESTART, after_s=0.01))
    (happened,) = part.disturbed()
    assert part.said == ["begin nf-1-1", "begin nf-1-2", "end nf-1-1", "end nf-1-2"]
    assert happened.what == "hit nf-1-1; hit nf-1-2"


IN_KERNEL = {"ipsec"}
"""Kinds without a process, whose class has the steps of tunnels that have one."""
DRIVERS = [each for each in (*functions().values(), *vswitches().values()) if each.factory is not None]


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.name)
def test_a_driver_with_steps_for_events_declares_them_and_calls_them_off_first_when_it_is_stopped(
    driver: FunctionDriver | VSwitchDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restart that is still to come, or goes on, would start a program again that was removed meanwhile."""

    class FirstStepError(Exception):
        pass

    made: Any = driver_registry.load(driver.factory or "")
    made = made if isinstance(made, type) else get_type_hints(made)["return"]
    assert issubclass(made, Disturbed) == bool(driver.events) or driver.name in IN_KERNEL
    if issubclass(made, Disturbed):
        monkeypatch.setattr(Disturbed, "call_off", raising(FirstStepError()))
        with pytest.raises(FirstStepError):
            made.__new__(made).stop()  # type: ignore[attr-defined] # of a part


def test_an_event_that_is_called_off_does_not_begin_or_ends_at_once() -> None:
    part, begin_s = Part(), time.monotonic()
    part.disturb(coming(after_s=10 * NEVER_S))
    part.call_off()
    assert time.monotonic() - begin_s < NEVER_S
    assert (part.said, part.disturbed()) == (["before"], ())
    part.call_off()
    part, begin_s = Part(), time.monotonic()
    part.disturb(Disturbance(targets=("nf-1-1",), event=PartEvent.PAUSE, after_s=0.01, hold_s=10 * NEVER_S))
    wait_until("the pause", lambda: "" if "begin" in part.said else "not yet", NEVER_S)
    part.call_off()
    assert time.monotonic() - begin_s < NEVER_S
    assert part.said == ["before", "begin", "end"], "a program that was stopped goes on"


def test_what_cannot_happen_is_refused_at_once_and_a_failed_event_raised_where_it_is_awaited() -> None:
    with pytest.raises(Unsupported, match=r"^reload is not possible for nf-1-1 with its driver$"):
        Part().disturb(coming(PartEvent.RELOAD))
    part = Part(CsitError("no carrier"))
    part.disturb(coming())
    with pytest.raises(CsitError, match=r"^pause of nf-1-1 failed: no carrier$"):
        part.disturbed()


def test_of_several_drivers_the_one_that_has_the_target_is_asked_and_all_that_do_not_stop_are_named() -> None:
    part = Part()
    several = MixedKinds([OneKind(), part], {"csn1x1i1": "nf-1-1", "csn2x1i1": "nf-2-1"})  # type: ignore[list-item] # no NF needed
    several.disturb(coming())
    assert len(several.disturbed()) == 1
    for event in (PartEvent.KILL, PartEvent.PAUSE):
        with pytest.raises(Unsupported, match=f"{event} is not possible for nf-2-1 with its driver"):
            several.disturb(coming(event, "nf-2-1"))
    several.disturb(coming(target="nf-3-1"))  # on another node
    assert several.disturbed() == ()
    stuck: Any = [SimpleNamespace(stop=raising(CsitError(f"nf-{number}-1 does not end"))) for number in (1, 2)]
    with pytest.raises(CsitError, match=r"^nf-2-1 does not end; nf-1-1 does not end$"):
        MixedKinds(stuck).stop()


@pytest.fixture
def program() -> "Iterator[subprocess.Popen[bytes]]":
    with subprocess.Popen(["sleep", "60"]) as running:
        yield running
        running.kill()


def test_a_process_is_started_again_after_it_was_killed(program: "subprocess.Popen[bytes]") -> None:
    said: list[int | None] = []
    restart = process_steps(PartEvent.RESTART, "it", lambda: [program.pid], lambda: said.append(program.wait(NEVER_S)))
    restart.begin()
    assert restart.end is not None
    restart.end()
    assert said == [-signal.SIGKILL]
    for event in (PartEvent.RESTART, PartEvent.ADD, PartEvent.MOVE):
        with pytest.raises(Unsupported, match=f"{event} is not possible for it with its driver"):
            process_steps(event, "it", list)


def test_a_process_to_be_added_is_ended_before_the_traffic_begins(program: "subprocess.Popen[bytes]") -> None:
    said: list[str] = []
    add = process_steps(PartEvent.ADD, "it", lambda: [program.pid], lambda: said.append("started"))
    assert add.before is not None and add.end is None
    add.before()
    assert program.wait(NEVER_S) == -signal.SIGKILL
    assert not said
    add.begin()
    assert said == ["started"]


def test_processes_are_stopped_continued_and_killed(program: "subprocess.Popen[bytes]") -> None:
    pause = process_steps(PartEvent.PAUSE, "it", lambda: [program.pid])
    pause.begin()
    wait_until("stopped", lambda: "" if is_stopped(program.pid) else "it runs", NEVER_S, pause_s=0.01)
    assert pause.end is not None
    pause.end()
    wait_until("continued", lambda: "it is stopped" if is_stopped(program.pid) else "", NEVER_S, pause_s=0.01)
    assert program.poll() is None
    kill = process_steps(PartEvent.KILL, "it", lambda: [program.pid])
    kill.begin()
    assert program.wait(NEVER_S) == -signal.SIGKILL
    kill.begin()  # gone already
