"""`answer`: number of service instances that fit at a rate and a latency."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from csit_utils.analysis.grouping import is_measured
from csit_utils.analysis.runs import newest, newest_nights
from csit_utils.commands.results.inputs import INPUTS, MAX_TESTS_OR_NIGHT, opened, report_problems, without
from csit_utils.commands.tables import FORMAT, TableForm, TableLine, print_sentence, print_table
from csit_utils.dataset.inputs import output_of
from csit_utils.dataset.measures import Measure
from csit_utils.dataset.rows import NDR, OWN, PDR, InstanceRow, LatencyRow
from csit_utils.report.details.capsule import choices_of
from csit_utils.report.units import rate as human_rate
from csit_utils.studies.density.analysis.answers import DensityAnswer, Question, answers, evidence
from csit_utils.studies.density.answer_text import COLUMNS, evidence_text, next_text, question_text, view
from resources.libraries.python.errors import ConfigError, CsitError
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.recording.writer import check_folder

if TYPE_CHECKING:
    from csit_utils.dataset.store.stored_contents import Stored

_PREFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
_TIMES_NS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9}
_SPACE_BYTES = 10_000_000
_L1_BYTES = 20
"""Preamble, start delimiter and inter-frame gap of Ethernet."""


@dataclass(frozen=True)
class Rate:
    """A rate in packets or bits per second."""

    value: float
    bits: bool

    def pps(self, frame_mean_bytes: float, layer: str) -> float:
        """Return packets per second for a mean L2 frame size; `layer` of a bandwidth is `L1` or `L2`."""
        if not self.bits:
            return self.value
        return self.value / (8 * (frame_mean_bytes + (_L1_BYTES if layer == "L1" else 0)))


def parse_rate(text: str) -> Rate:
    """Return a rate.

    Raises:
        ConfigError: Invalid, without a unit, or not above 0.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmg]?)(pps|bps|bit/s|b/s)?\s*", text, re.IGNORECASE)
    if match is None or float(match[1]) <= 0:
        raise ConfigError(f"no rate '{text}'; expected for example 500kpps, 1.2Mpps or 1Gbit/s")
    if match[3] is None:
        number = match[1]
        raise ConfigError(f"--rate {text}: no unit; expected for example {number}kpps, {number}Mpps or {number}Mbit/s")
    return Rate(float(match[1]) * _PREFIXES[match[2].lower()], match[3].lower() != "pps")


def parse_time_ns(text: str) -> float:
    """Return a time in nanoseconds.

    Raises:
        ConfigError: Invalid, or not above 0.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ns|us|µs|μs|ms|s)\s*", text)
    if match is None or float(match[1]) <= 0:
        raise ConfigError(f"no time '{text}'; expected for example 80us or 1.5ms")
    return float(match[1]) * _TIMES_NS[match[2]]


def answer(
    inputs: INPUTS,
    rate: Annotated[str, typer.Option(help="Rate per instance, both directions: 500kpps, 1Gbit/s.")],
    p99: Annotated[
        str, typer.Option(metavar="TIME", help="Upper bound of the 99th percentile of latency: 80us, 1ms.")
    ] = "",
    goal: Annotated[
        str | None,
        typer.Option(
            metavar="GOAL", help="Allowed loss: NDR (none) or PDR (0.5 %); default: PDR, or NDR if no test has a PDR."
        ),
    ] = None,
    layer: Annotated[str, typer.Option(help="Layer of a rate in bit/s: L2 (with FCS) or L1 (plus 20 bytes).")] = "L2",
    best: Annotated[
        bool, typer.Option("--best", help="Only the largest number of instances of each service type, without reasons.")
    ] = False,
    form: FORMAT = TableForm.TABLE,
    measure: Annotated[
        bool, typer.Option("--measure", help="Run the trials that decide open answers on their testbed, then answer.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FOLDER",
            help="Folder of the trials of --measure; default: results/answer-<time>.",
        ),
    ] = None,
    max_tests: MAX_TESTS_OR_NIGHT = None,
) -> None:
    """Show how many service instances fit at a rate and a latency.

    Also shows what limits the next instance. Each direction of each instance must carry half of the rate. Answers are
    numbers of instances that a test has measured; nothing is interpolated. Where no measured load decides, the answer
    names the trial that would. Of a dataset, the newest night of each testbed with a test in the matrix is read, unless
    --max-tests includes earlier ones.

    \b
    Examples:
    ./csit answer results/output.xml --rate 500kpps --p99 100us
    ./csit answer results/output.xml --rate 500kpps --best
    ./csit answer results/output.xml --rate 500kpps --p99 100us --measure
    """  # noqa: D301 - \b keeps the lines of the examples apart
    asked_rate, bound = parse_rate(rate), parse_time_ns(p99) if p99 else None
    for option, given, choices in (("--goal", goal, (NDR, PDR)), ("--layer", layer, ("L1", "L2"))):
        if given is not None and given.upper() not in choices:
            raise ConfigError(f"{option} {given}: choose from {', '.join(choices)}")
    if output is not None and not measure:
        raise ConfigError(f"--output {output} is the folder of the trials of --measure, which is not given")

    def answered(known: "Stored") -> list[DensityAnswer]:
        metric = next(each for each in (PDR, NDR) if each == goal.upper()) if goal else _best_known(known)
        return [
            each
            for frame, mean_bytes in _frames(known).items()
            for each in _answers(known, Question(asked_rate.pps(mean_bytes, layer.upper()), bound, metric), frame)
        ]

    choose = newest_nights if max_tests is None else partial(newest, max_tests=max_tests)
    known = opened(inputs).contents(of_density=True, choose=choose)
    found = answered(known)
    if not found:
        raise without(inputs, known.problems, "contains no density test with a rate to answer from")
    if measure:
        place = output or PROJECT / "results" / f"answer-{datetime.now(UTC):%Y%m%d-%H%M%S}"
        runs: dict[_OpenTrial, Path] = {}
        while trials := [each for each in _open_trials(known, found) if each not in runs]:
            for number, each in enumerate(trials, len(runs) + 1):
                runs[each] = place / str(number)
                _run(each, runs[each])
            known = opened([*inputs, *map(output_of, runs.values())]).contents(of_density=True, choose=choose)
            found = answered(known)
    _print(_largest(found) if best else found, form, evidence=not best)
    if measure:
        typer.echo(f"trials: {place}" if runs else "no answer is open: nothing was measured", err=True)
    elif is_open := [each for each in found if each.trial_pps is not None]:
        own = any(each.next.run and each.next.run.row.origin == OWN for each in is_open)
        how = ": --measure runs the trials that decide" if own else ""
        typer.echo(f"{len(is_open)} of {len(found)} answers open{how}", err=True)
    report_problems(known.problems)


@dataclass(frozen=True)
class _OpenTrial:
    """A trial that decides an answer, as a run of one test."""

    suite: str
    """Path of the suite."""
    variables: tuple[tuple[str, str], ...]
    label: str

    @property
    def arguments(self) -> list[str]:
        """Robot's."""
        return [word for name, value in self.variables for word in ("-v", f"{name}:{value}")] + [self.suite]


def _open_trials(known: "Stored", found: Sequence[DensityAnswer]) -> list[_OpenTrial]:
    """Return the trials that decide open answers.

    Raises:
        ConfigError: The testbed of one is not known here, or is not any more what it was.
    """
    return list(dict.fromkeys(_open_trial(known, each) for each in found if each.trial_pps is not None))


def _open_trial(known: "Stored", each: DensityAnswer) -> _OpenTrial:
    row = each.next.run.row if each.next.run else None
    cell = f"{each.series.service_type} {each.next.services}x{each.nfs}"
    if row is None or row.origin != OWN or (record := known.record(row.anchor)).rerun is None:
        raise ConfigError(f"--measure: {cell} was not measured by a suite of this project that names its testbed")
    rerun = record.rerun
    if load_topology(PROJECT / rerun.topology).digest != rerun.topology_digest:
        raise ConfigError(
            f"--measure: {rerun.topology} has changed since {cell} was measured ({record.started_at[:10]}): trials "
            "there would not be about the same testbed; measure the cell again"
        )
    variables = choices_of(record) | {
        "TOPOLOGY": str(PROJECT / rerun.topology),
        "AT_RATE": f"{each.question.rate_pps:.12g}",
    }
    suite = PROJECT / "tests" / "density" / f"{each.series.service_type.lower()}-latency.robot"
    return _OpenTrial(str(suite), tuple(variables.items()), f"{cell} at {human_rate(each.trial_pps or 0.0)}")


def _run(trial: _OpenTrial, folder: Path) -> None:
    """Run a trial as `./csit robot` does.

    Raises:
        CsitError: It failed.
    """
    from csit_utils.commands.runs.robot import console_on_stderr, run_suites  # noqa: PLC0415 - Robot costs time, and most answers need none

    check_folder(folder, _SPACE_BYTES)
    typer.echo(f"measuring {trial.label} of {dict(trial.variables)['TOPOLOGY']}", err=True)
    with console_on_stderr():
        status = run_suites(["--console", "quiet", "-d", str(folder), *trial.arguments])
    if status:
        output = output_of(folder)
        why = "; ".join(row.message for row in opened([output]).contents().tests) if output.exists() else "see above"
        raise CsitError(f"{folder}: the trial of {trial.label} failed: {why}")


def _best_known(known: "Stored") -> Measure:
    """The goal that is asked for by default: a tool that searches for NDR only would leave all answers open."""
    return next((each for each in (PDR, NDR) if any(is_measured(row, each) for row in known.tests)), PDR)


def _frames(known: "Stored") -> dict[str, float]:
    """Mean L2 size in bytes by name of the frame size."""
    return {row.frame: row.frame_mean_bytes for row in known.tests if row.frame and row.frame_mean_bytes}


def _answers(known: "Stored", question: Question, frame: str) -> list[DensityAnswer]:
    seen = evidence(known.tests, known.rows(InstanceRow, LatencyRow), known.refused)
    return [each for each in answers(question, seen) if each.series.frame == frame]


def _largest(found: Sequence[DensityAnswer]) -> list[DensityAnswer]:
    """Return of each service type of a system the answer with most instances, and of those with most NFs."""
    best: dict[tuple[object, ...], DensityAnswer] = {}
    for each in sorted(found, key=lambda each: (each.services, each.nfs)):
        best[each.question, each.series.system, each.series.service_type, each.series.frame] = each
    return [each for each in found if each in best.values()]


def _print(found: Sequence[DensityAnswer], form: TableForm, *, evidence: bool) -> None:
    if form in {TableForm.CSV, TableForm.JSON}:
        print_table((), [TableLine((), as_object(each)) for each in found], form)
        return
    heads = (*COLUMNS[: None if evidence else COLUMNS.index("evidence")], "note")
    for question in dict.fromkeys(each.question for each in found):
        print_sentence(question_text(question))
        shown = [view(each) for each in found if each.question == question]
        lines = [TableLine((*each.cells[: len(heads) - 1], ", ".join(each.marks)), {}) for each in shown]
        print_table(heads, lines, form, tuple(head for head in heads if head not in {"NFs", "instances"}))


def as_object(found: DensityAnswer) -> dict[str, Any]:
    """Return an answer as a JSON object."""
    series, best, question = found.series, found.best, found.question
    run, point = (best.run, best.point) if best else (None, None)
    return {
        "simulated": series.system.simulated,
        "testbed": series.system.testbed,
        "service_type": series.service_type,
        "nf_nodes": found.nfs,
        "nf_size": series.nf_size,
        "vs_dtc": series.vs_dtc,
        "frame": series.frame,
        "profile": series.profile,
        "goal": question.metric,
        "rate_pps": question.rate_pps,
        "p99_below_ns": question.p99_ns,
        "instances": found.services,
        "test": run.row.test_name if run else None,
        "oversubscribed": run.row.oversubscribed if run else None,
        "verdicts": run.row.verdicts if run else None,
        "worst_instance_pps": run.worst_pps if run else None,
        "worst_instance": run.worst_of if run else None,
        "load_pps": run.load_pps if run else None,
        "p99_ns": point.p99_ns if point else None,
        "p99_load_pps": point.load_pps if point else None,
        "p99_test": best.timed.test_name if best and best.timed else None,
        "evidence": evidence_text(found),
        "next_instances": found.next.services,
        "next_limit": found.next.verdict.value,
        "next": next_text(found),
        "trial_pps": found.trial_pps,
        "smaller_that_fail": [each.services for each in found.doubts],
    }
