"""The noise floor of the CPUs that plans use."""

from collections.abc import Iterator, Sequence

from resources.libraries.python.model.findings.check_finding import CheckFinding, ok, warning
from resources.libraries.python.model.noise import CpuNoise
from resources.libraries.python.search.findings.host_noise import QUEUE_FRAMES, in_words, micros

_LONGEST_NS = 1_000_000
"""As long as a receive queue of 256 frames lasts at 256 kpps; a host that is tuned stays below a tenth of it."""
_SHARE = 0.005
_FIX = (
    "isolate the CPUs (isolcpus, nohz_full, rcu_nocbs), move interrupts and stop irqbalance (./csit prepare TOPOLOGY), "
    "keep C-states shallow, and ask the firmware for less power management"
)


def check(place: str, rows: Sequence[CpuNoise]) -> Iterator[CheckFinding]:
    """Findings about observed CPUs of one machine.

    Args:
        place: In the topology.
        rows: Nothing, where they were in use.
    """
    if not rows:
        return
    longest_ns, share = max(row.longest_ns for row in rows), max(row.share for row in rows)
    text = in_words(rows)
    if not all(row.real_time for row in rows):
        text += "; observed without real-time priority, so other programs count"
    if smis := sum(row.smis or 0 for row in rows):
        text += f"; {smis} System Management Interrupts"
    if stolen_s := sum(row.stolen_s or 0.0 for row in rows):
        text += f"; the hypervisor took {stolen_s:.2g} s"
    if longest_ns > _LONGEST_NS:
        limit_pps = QUEUE_FRAMES / (longest_ns * 1e-9)
        text += f"; at more than {limit_pps:.0f} pps a receive queue of {QUEUE_FRAMES} frames overflows meanwhile"
        yield warning(place, "noise", f"{text} (longer than {micros(_LONGEST_NS)})", _FIX)
    elif share > _SHARE:
        yield warning(place, "noise", f"{text} (more than {100 * _SHARE:g} %)", _FIX)
    else:
        yield ok(place, "noise", text)
