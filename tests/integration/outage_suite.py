"""Small outage studies on a lab: what events do there, and where the data threads of NFs are meanwhile."""

import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from resources.libraries.python.drivers.host.programs.disturbances import MOVED
from resources.libraries.python.studies.outage.model import OutageRecord
from tests.integration.robot_runs import going_on, study_record, study_suite

_PINNED = """
sleep %s
for place in /proc/[0-9]*; do
    { read -r name <$place/comm; } 2>/dev/null || continue
    case $name in napi/csn*)
        echo "${name#napi/} $(sed -n 's/^Cpus_allowed_list:\\t//p' $place/status 2>/dev/null)"
    esac
done
"""
"""Kernel threads of ports of NFs, with the CPUs on which they may run."""
_WITHIN_S = 600.0
_DONE = {
    "reload nf-1-1": "rules replaced in one transaction",
    "move nf-1-1": MOVED,
    "move vswitch": MOVED,
    "restart nf-1-1": "ports down, then up with routes and data threads",
    "restart vswitch": "all bridges down, then up; learned addresses are lost",
    "add nf-1-1": "ports up with routes and data threads",
}


def study_watched(
    folder: Path, spec: str, *words: str, run_script: Callable[[str], str], every_s: float
) -> tuple[OutageRecord, Mapping[str, set[str]]]:
    """Run a study and look where the kernel's threads of NFs may run.

    Returns:
        The record, and lists of CPUs by NF (`1x1`), as the kernel writes them.
    """
    seen: dict[str, set[str]] = {}
    suite = study_suite(folder, "outage/routers.yaml", spec)
    with going_on(folder / "out", *words, "-i", "ROUTERS", sources=[suite]) as run:
        deadline = time.monotonic() + _WITHIN_S
        while run.poll() is None:
            assert time.monotonic() < deadline, f"the study has not ended within {_WITHIN_S:g} s"
            for nf, cpus in re.findall(r"^csn(\d+x\d+)\S* (\S+)$", run_script(_PINNED % every_s), re.MULTILINE):
                seen.setdefault(nf, set()).add(cpus)
        output, _ = run.communicate(timeout=_WITHIN_S)
    assert run.returncode == 0, output
    return study_record(folder / "out"), seen


def check_events(record: OutageRecord, seen: Mapping[str, set[str]], most_s: float) -> None:
    """Check restarts, additions, reloads and moves, the latter by the threads themselves."""
    found, plan = record.outage, record.plan
    assert found is not None and plan is not None
    assert not found.refused
    assert {trial.event: trial.done for trial in found.trials if trial.event in _DONE} == {
        name: what for name, what in _DONE.items() if name in found.spec.columns
    }
    for effect in found.effects:
        first_s = None if effect.first_packet_s is None else effect.first_packet_s.mean
        print(f"{effect.event}, instance {effect.instance}: {effect.lost.mean:.0f} lost, first packet {first_s}")
        event = effect.event.split()[0]
        if not effect.is_target or event in {"reload", "move"}:
            assert effect.outage_s.mean < most_s, effect
        elif event in {"restart", "add"}:
            # Bridges may be back before the next packet. A packet that is lost late is the machine, not the part.
            assert (effect.lost.mean > 0 and first_s is not None) or effect.event == "restart vswitch", effect
    planned = {nf: set(map(str, plan.cores.cpus(f"nf-{nf.replace('x', '-')}"))) for nf in ("1x1", "2x1")}
    single = {nf: {each for each in cpus if each.isdigit()} for nf, cpus in seen.items()}
    moved_to = single["1x1"] - planned["1x1"]
    assert len(moved_to) == 1 and moved_to <= set(map(str, plan.cores.beside("nf-1-1"))), seen
    assert single["2x1"] == planned["2x1"], seen
