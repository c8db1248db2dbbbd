"""What a study of chains shows on the console while it goes on."""

from collections.abc import Iterator

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import LONGEST_LOAD_S
from resources.libraries.python.model.characterization import Characterization
from resources.libraries.python.studies.chains.model.record import ChainRun, ChainStudy, Suspect
from resources.libraries.python.studies.chains.model.spec import ChainStudySpec
from resources.libraries.python.studies.chains.run import Done, StudyOfChains
from resources.libraries.python.studies.shared.console import Console, human_time

_MOST_SUSPECTS = 5
_MOST_REASONS = 4


class ChainProgress:
    """Chain k of n, what it gave, time left."""

    def __init__(self) -> None:
        self._console = Console()
        self._name = ""
        self._simulated = False

    def begins(self, name: str, lines: tuple[str, ...], *, simulated: bool) -> None:
        """A study begins; in a simulated world the time that is left is not a person's."""
        self._name, self._simulated = name, simulated
        self._console.line("")  # Robot's own line of the test may still be open
        for line in lines:
            self._console.line(f"{name}: {line}")

    def says(self, sentence: str) -> None:
        """Something is to be known of the study."""
        self._console.line(f"{self._name}: {sentence}")

    def chain(self, done: Done) -> None:
        """A chain was measured, or could not be."""
        left = "" if self._simulated else f"; about {human_time(done.remaining_s)} left"
        gave = ", ".join(dict.fromkeys(map(_gave, done.runs)))
        text = f"{self._name}: chain {done.number} of {done.of}, {done.runs[0].chain.name}: {gave}{left}"
        if any(run.failed for run in done.runs):
            self._console.line(text)
        else:
            self._console.status(text)

    def done(self, record: Characterization) -> None:
        """A test has ended."""
        if record.chain_study is None or not record.passed:
            self._console.line(f"{self._name}: {record.message}")
        if record.chain_study is not None:
            for line in suspects_in_words(record.chain_study):
                self._console.line(line + (" (simulated)" if record.simulated and line.startswith("suspect") else ""))


def lasting(spec: ChainStudySpec, seconds: object) -> ChainStudySpec:
    """A specification with another length of workloads, where one is given.

    Raises:
        ConfigError: It is no number of seconds.
    """
    text = str(seconds or "")
    if not text:
        return spec
    if not text.isdecimal() or not 1 <= int(text) <= LONGEST_LOAD_S:
        raise ConfigError(f"CHAIN_DURATION: '{text}' is no whole number of seconds from 1 to {LONGEST_LOAD_S}")
    return spec.model_copy(update={"duration_s": int(text)})


def preview_in_words(study: StudyOfChains, *, simulated: bool) -> tuple[str, ...]:
    """What is going to be measured, what policies forbid, which faults are planted."""
    chains, spec = study.chains, study.spec
    by_length = ", ".join(f"{count} of {length}" for length, count in chains.orders.items())
    time = "" if simulated else f", about {human_time(study.cost.seconds)}"
    workloads = "1 workload" if len(spec.workloads) == 1 else f"{len(spec.workloads)} workloads"
    lines = [f"{chains.count} chains ({by_length} VNFs) under {workloads} of {spec.duration_s} s{time}"]
    for row in chains.dropped:
        examples = "; ".join(" > ".join(order) for order in row.examples)
        what = "1 chain" if row.count == 1 else f"{row.count} chains"
        lines.append(f"policy '{row.policy}' forbids {what}" + (f", such as {examples}" if examples else ""))
    lines += [f"planted fault: {text}" for text in study.planted()]
    return tuple(lines)


def suspects_in_words(study: ChainStudy) -> Iterator[str]:
    """The first suspects with their reasons, and what could not be measured."""
    failed: dict[str, dict[str, None]] = {}
    for run in study.runs:
        if run.failed:
            failed.setdefault(run.failed, {})[run.chain.name] = None
    if not study.suspects:
        yield "no chain stands out"
    for rank, suspect in enumerate(study.suspects[:_MOST_SUSPECTS], 1):
        yield _suspect(rank, suspect)
        for reason in suspect.reasons[:_MOST_REASONS]:
            yield f"    {reason}"
    if len(study.suspects) > _MOST_SUSPECTS:
        yield f"and {len(study.suspects) - _MOST_SUSPECTS} more suspects"
    for reason, names in failed.items():
        yield f"not measured: {'; '.join(names)}: {reason}"


def _suspect(rank: int, suspect: Suspect) -> str:
    fault = f"; a fault was planted: {suspect.planted}" if suspect.planted else ""
    by = " and ".join(suspect.rules)
    return f"suspect {rank} by {by}: {suspect.chain.name}, mean Cook's distance {suspect.mean_distance:.3g}{fault}"


def _gave(run: ChainRun) -> str:
    if run.throughput_bps is None or run.offered_bps is None:
        return f"not measured: {run.failed}"
    loss = "" if run.loss_ratio is None else f", loss {100 * run.loss_ratio:.2f} %"
    return f"{run.throughput_bps / 1e6:.3g} of {run.offered_bps / 1e6:.3g} Mbit/s{loss}"
