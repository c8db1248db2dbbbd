"""Sentences of a study of chains on the console."""

from collections.abc import Iterator

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import LONGEST_LOAD_S
from resources.libraries.python.studies.chains.model.record import ChainRun, ChainStudy, Suspect
from resources.libraries.python.studies.chains.model.spec import ChainStudySpec
from resources.libraries.python.studies.chains.run import ChainStudyTest
from resources.libraries.python.studies.shared.progress import human_time

_MOST_SUSPECTS = 5
_MOST_REASONS = 4


def lasting(spec: ChainStudySpec, seconds: object) -> ChainStudySpec:
    """A specification with another length of workloads, where one is given.

    Raises:
        ConfigError: It is no number of seconds.
    """
    text = str(seconds or "")
    if not text:
        return spec
    if not text.isdecimal() or not 1 <= int(text) <= LONGEST_LOAD_S:
        raise ConfigError(f"CHAIN_DURATION: '{text}' is not a whole number of seconds from 1 to {LONGEST_LOAD_S}")
    return spec.model_copy(update={"duration_s": int(text)})


def preview_in_words(study: ChainStudyTest, *, simulated: bool) -> tuple[str, ...]:
    """Preview of a study: chains, time, chains that policies forbid, planted faults."""
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
    """The first suspects with their reasons, and chains that could not be measured."""
    failed: dict[str, dict[str, None]] = {}
    for run in study.runs:
        if run.failed:
            failed.setdefault(run.failed, {})[run.chain.name] = None
    if not study.suspects:
        yield "no suspects"
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


def found_in_words(run: ChainRun) -> str:
    """Throughput and loss of a run, or why there are none."""
    if run.throughput_bps is None or run.offered_bps is None:
        return f"not measured: {run.failed}"
    loss = "" if run.loss_ratio is None else f", loss {100 * run.loss_ratio:.2f} %"
    return f"{run.throughput_bps / 1e6:.3g} of {run.offered_bps / 1e6:.3g} Mbit/s{loss}"
