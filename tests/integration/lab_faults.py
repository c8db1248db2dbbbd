"""What tests break on a lab: a node's agent, its SSH server, its cable, the node; and runs that lose nodes so."""

import os
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from resources.libraries.python.drivers.host.programs.waiting import wait_until
from tests.integration.lab import Lab
from tests.integration.lab_runs import agents, state, wait_for_state
from tests.integration.pauses import SENDING, STEPS, Moment, Paused
from tests.integration.robot_runs import DENSITY, going_on, reasons_to_repeat

LabFault = Callable[[Lab], Callable[[], None] | None]
"""Breaks something; returns what is to be done when the run has gone on, if there is something."""


def agent_is_killed(lab: Lab, name: str = "DUT1") -> None:
    (pid,) = agents(lab, name)
    with suppress(ProcessLookupError):  # on a busy machine it may have given up before
        os.kill(pid, signal.SIGKILL)


def agent_is_stopped(lab: Lab, name: str = "DUT1") -> None:
    (pid,) = agents(lab, name)
    os.kill(pid, signal.SIGSTOP)


def sshd_is_killed(lab: Lab, name: str = "DUT1") -> None:
    lab.nodes[name].kill_sshd()
    lab.nodes[name].start_sshd()


def sshd_of_the_tg_is_killed(lab: Lab) -> None:
    sshd_is_killed(lab, "TG")


def sshd_is_stopped(lab: Lab, name: str = "DUT1") -> Callable[[], None]:
    """With its sessions. It goes on when the agent, which hears nothing, has ended."""
    lab.nodes[name].signal_sshd(signal.SIGSTOP)

    def continued() -> None:
        _wait_for_the_end(lab, name)
        lab.nodes[name].signal_sshd(signal.SIGCONT)

    return continued


def cable_is_pulled(lab: Lab, name: str = "TG") -> None:
    """Neither side gets an error from the network: both have to notice the silence."""
    lab.cut(name)
    _wait_for_the_end(lab, name)
    lab.reconnect(name)


def node_is_reimaged(lab: Lab, name: str = "DUT1") -> None:
    """It comes back without what an agent runs on."""
    lab.reboot(name, down_s=3.0, reimaged=True)


def generator_is_killed(lab: Lab) -> None:
    """Its workers."""
    workers = [pid for pid, line in lab.nodes["TG"].processes().items() if "drivers.generator" in line]
    assert workers
    for pid in workers:
        os.kill(pid, signal.SIGKILL)


def nf_loses_its_port(lab: Lab) -> None:
    lab.nodes["DUT1"].run("ip", "-n", "csit-nf-1-1", "link", "del", "csn1x1i1")


REASONS: Mapping[LabFault, str] = {
    agent_is_killed: "^DUT1: the agent ended with 137",
    sshd_of_the_tg_is_killed: "^TG: the connection ended",
    generator_is_killed: "^TG: .*was killed by SIGKILL",
    nf_loses_its_port: "^DUT1: .*csn1x1i1",
}
"""Patterns of the reasons by which a study names what was broken."""


def _wait_for_the_end(lab: Lab, name: str) -> None:
    wait_until("end of the agent", lambda: str(agents(lab, name) or ""), 60, pause_s=0.1)


STEP_FAULTS: Sequence[tuple[Moment, LabFault]] = (
    (Moment(STEPS, call=1, after=True), agent_is_killed),
    (Moment(STEPS, call=3, after=True), generator_is_killed),
    (Moment(STEPS, call=5, after=True), sshd_of_the_tg_is_killed),
)
"""In each of the first three steps of a study, which are then deployed once more."""
_LOSE_NO_NODE = (generator_is_killed, nf_loses_its_port)


def run_losing_nodes(
    lab: Lab, folder: Path, faults: Sequence[tuple[Moment, LabFault]], *words: str, sources: Sequence[Path] = (DENSITY,)
) -> None:
    """Run Robot while something breaks at chosen moments; it succeeds, lost nodes come back, and nothing is left."""
    before, paused = state(lab), Paused(folder, [moment for moment, _ in faults])
    with going_on(folder / "out", *words, *paused.options, sources=sources) as run:
        for moment, fault in faults:
            with paused.at(moment, run):
                then = fault(lab)
            if then is not None:
                then()
        said, _ = run.communicate(timeout=600)
    assert run.returncode == 0, said
    # A node that hears nothing for some seconds is lost too, on a busy machine.
    assert said.count("it is back") >= sum(fault not in _LOSE_NO_NODE for _, fault in faults), said
    wait_for_state(lab, before)
    reasons = reasons_to_repeat(folder / "out")
    for moment, fault in faults:
        if moment.at in {STEPS, SENDING}:  # what is repeated in a study; density tests look at their own reasons
            assert any(re.search(REASONS[fault], reason) for reason in reasons), (fault, reasons)
