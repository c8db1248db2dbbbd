"""`bisect`: find the revision of a component that changed a metric of a cell."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from math import exp
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from csit_utils.analysis.bisection import BisectionAnswer, BisectionQuestion, Culprit
from csit_utils.bisection.run import BisectionJournal, BisectionProgress, BisectionResult, BisectionRun
from csit_utils.bisection.spec import CALLED_STEPS, REVISION, BisectionSpec, Revision, narrowed, revisions_of, share_of
from csit_utils.commands.tables import TABLE_OR_JSON, TableForm, print_sentence
from csit_utils.report.html import html_templates, own_file
from csit_utils.report.units import percent, rate, seconds
from csit_utils.studies.density.plan_command import parse_cell
from resources.libraries.python.errors import CommandFailed, ConfigError, NoTraffic, NotReady
from resources.libraries.python.model.base import error_text
from resources.libraries.python.model.load import load_topology, load_yaml, text_of
from resources.libraries.python.model.measurements.trial import Trial
from resources.libraries.python.model.request.cell import Cell, TestType
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.model.result import MeasurementRequest
from resources.libraries.python.model.testbed.topology import Topology, World
from resources.libraries.python.recording.environment import fingerprint
from resources.libraries.python.recording.run_journal import digest_of
from resources.libraries.python.recording.writer import check_folder
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.studies.density.planning.selection import parse_kinds
from resources.libraries.python.studies.density.run import DensityTest
from resources.libraries.python.supervisor import end_marked, marked, supervised
from resources.libraries.python.testbed.deployment.parts import Testbed
from resources.libraries.python.testbed.kinds.factory import located, make_testbed
from resources.libraries.python.whole_files import write_whole

_SPACE_BYTES = 10_000_000
_LAST_OUTPUT = 300
"""Bytes of an installation's output that are repeated when it fails."""
_STATUS = {BisectionAnswer.NOT_HERE: 3, BisectionAnswer.UNDECIDED: 4}


def bisect(
    specification: Annotated[Path, typer.Argument(help="Specification of a bisection, YAML.", metavar="SPEC")],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FOLDER", help="Folder of the results; default: results/<name of SPEC>."
        ),
    ] = None,
    step: Annotated[
        Path | None,
        typer.Option(
            help="File of ./csit gate --steps or trend --steps: bisect its largest regression between its versions."
        ),
    ] = None,
    list_them: Annotated[bool, typer.Option("--list", help="List the revisions; install and measure nothing.")] = False,
    form: TABLE_OR_JSON = TableForm.TABLE,
) -> None:
    """Find the revision that changed a metric of a cell.

    Installs and measures revisions between a good and a bad one, with most trials where the result is uncertain, until
    the answer is wrong with a probability of at most 1 % by a model of the noise. Revisions are commits of a git
    repository, versions of a package, or kernel command lines. Writes bisection.json, bisection.html and a journal: the
    same command resumes a bisection that was interrupted, also by a reboot.

    Exit status: 0 the culprit, or two, are named; 1 failed; 2 invalid input; 3 good and bad do not differ; 4 undecided.

    \b
    Examples:
    ./csit bisect nightly.yaml -o results/bisect
    ./csit bisect vpp.yaml --step steps.json   # a step of ./csit gate --steps
    """  # noqa: D301 - \b keeps the lines of the examples apart
    spec = load_yaml(specification, BisectionSpec)
    if step is not None:
        try:
            spec = narrowed(spec, CALLED_STEPS.validate_json(text_of(step)))
        except ValueError as error:  # pydantic's too
            raise ConfigError(f"{step}: {error_text(error)}") from error
    base = specification.absolute().parent
    revisions = revisions_of(spec.source, base)
    if list_them:
        for number, revision in enumerate(revisions):
            print_sentence(f"{number}\t{revision.label}")
        return
    topology = load_topology(base / spec.topology)
    cell = _cell(spec, specification)
    folder = output or Path("results") / specification.stem
    check_folder(folder, _SPACE_BYTES)
    names = [revision.name for revision in revisions]
    digest = digest_of(spec.model_dump_json(), topology.digest, *names)
    question = BisectionQuestion(len(revisions), share_of(spec.change), most=spec.most_observations)
    topology = located(topology)
    with BisectionJournal(folder / BisectionJournal.FILE, digest) as journal, closing(make_testbed(topology)) as world:
        for line in (*journal.remarks, *world.open()):
            typer.echo(line, err=True)
        if journal.rows:
            typer.echo(f"{journal.path}: {len(journal.rows)} steps of an earlier run are continued", err=True)
        measure = _Measurement(spec, topology, world, cell, len(journal.rows))
        run = BisectionRun(
            revisions,
            question,
            journal,
            _Installation(spec, base, str(journal.path.absolute())),
            measure,
            report=_progress_lines(revisions, measure.metric),
        )
        result = run.run()
    title = f"{spec.metric} of {spec.cell} on {topology.metadata.name}"
    found = as_object(result, revisions)
    write_whole(folder / "bisection.json", json.dumps(found, indent=1) + "\n")
    page = folder / "bisection.html"
    write_whole(page, render_bisection(result, revisions, title, simulated=topology.world is World.SIM))
    if form is TableForm.JSON:
        typer.echo(json.dumps(found))
    else:
        print_sentence(headline(result, revisions))
        print_sentence(effort(result, revisions))
        typer.echo(f"page: {page}")
    if result.beliefs.answer in _STATUS:
        raise typer.Exit(_STATUS[result.beliefs.answer])


def _cell(spec: BisectionSpec, path: Path) -> Cell:
    """Return the cell with the user's program in each of its NFs."""
    if (spec.metric == "forwarded") != (spec.load_pps is not None):
        raise ConfigError(f"{path}: load_pps is for the metric forwarded, which needs it")
    cell = parse_cell(spec.cell, "" if spec.program else spec.nf_kinds).cells()[0]
    if spec.program is None:
        return cell
    programs = [spec.program] * cell.nf_nodes
    fields = cell.model_dump(mode="json") | {"nf_kinds": parse_kinds(spec.nf_kinds), "programs": programs}
    try:
        return Cell.model_validate(fields)
    except ValidationError as error:
        raise ConfigError(f"{path}: program: {error_text(error)}") from error


@contextmanager
def _noted_signals() -> Iterator[list[int]]:
    """Let SIGINT and SIGTERM wait; give the numbers of those that came.

    One that is handled while a process is started would be lost, because Python ignores exceptions in what it calls
    around a fork, or would leave a process that its caller does not know yet.
    """
    came: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _: came.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Installation:
    """Runs the installation of a revision by its argument vector, and ends all of its processes after its limit.

    `mark`: Of its processes; those of an earlier run are ended first.
    """

    def __init__(self, spec: BisectionSpec, folder: Path, mark: str) -> None:
        self._spec, self._folder, self._mark = spec, folder, mark
        end_marked(mark)

    def __call__(self, revision: Revision) -> None:
        argv = [word.replace(REVISION, revision.name) for word in self._spec.install]
        if shutil.which(self._folder / argv[0] if os.sep in argv[0] else argv[0]) is None:
            raise ConfigError(f"install: {argv[0]} cannot be run: no such program")
        with tempfile.TemporaryFile() as output:
            with _noted_signals() as came:
                process = subprocess.Popen(
                    supervised(argv),
                    cwd=self._folder,
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    env=marked(self._mark),
                )
            assert process.stdin is not None  # noqa: S101 - asked for above
            try:
                for number in came:
                    signal.raise_signal(number)
                process.wait(self._spec.install_limit_s)
            except subprocess.TimeoutExpired as error:
                limit_s = self._spec.install_limit_s
                raise NotReady(f"installation of {revision.label}", limit_s, "still running") from error
            finally:
                process.stdin.close()
                process.wait()
                end_marked(self._mark)  # of a supervisor that was killed
            if process.returncode:
                output.seek(max(0, output.seek(0, os.SEEK_END) - _LAST_OUTPUT))
                raise CommandFailed(argv, process.returncode, output.read().decode(errors="replace").strip())


class _Measurement:
    """Deploys the cell, measures it as a test does, and removes it.

    `deployments`: those of earlier runs.
    """

    def __init__(
        self, spec: BisectionSpec, topology: Topology, world: Testbed, cell: Cell, deployments: int = 0
    ) -> None:
        self._spec, self._topology, self._world = spec, topology, world
        chosen = profile(spec.search).model_copy(update={"mrr_trials": spec.trials, "mrr_duration_s": spec.trial_s})
        kind = TestType.MRR if spec.metric in ("MRR", "forwarded") else TestType.NDRPDR
        self._asked = MeasurementRequest(test_type=kind, cell=cell, frame=frame(spec.frame), profile=chosen)
        self._environment = fingerprint()
        self._deployments = deployments
        self.metric = spec.metric

    def __call__(self) -> Sequence[float]:
        # Simulated deployments differ by the number of their repetition.
        asked = self._asked.model_copy(update={"repetition": self._deployments})
        self._deployments += 1
        test = DensityTest(self._topology, self._world, asked, self._environment)
        test.plan()
        try:
            test.deploy()  # traffic is not verified: a slow revision may lose packets at any rate
            return self._values(test)
        finally:
            if failure := test.remove():
                typer.echo(failure, err=True)

    def _values(self, test: DensityTest) -> Sequence[float]:
        spec = self._spec
        if spec.load_pps is not None:
            trial = Trial(load_pps=spec.load_pps, duration_s=spec.trial_s, frame=self._asked.frame, purpose="bisect")
            return [test.measure(trial).forwarded_pps for _ in range(spec.trials)]
        if spec.metric == "MRR":
            test.mrr()
            return test.draft.mrr.receive_rates_pps if test.draft.mrr else ()
        test.search((spec.metric,))
        found = test.draft.ndr if spec.metric == "NDR" else test.draft.pdr
        if found is None or found.lower_pps is None:
            raise NoTraffic(f"{spec.metric} was not reached")
        return (found.lower_pps,)


def _progress_lines(revisions: Sequence[Revision], metric: str) -> Callable[[BisectionProgress], None]:
    """Return what prints a line of progress on standard error for each observation."""

    def report(now: BisectionProgress) -> None:
        value = "skipped" if now.value is None else f"{metric} {rate(now.value)}"
        best = max(now.beliefs.culprits, key=lambda each: each.probability, default=None)
        probable = f"; most probable: {_place(best, revisions)} ({percent(best.probability)})" if best else ""
        left = f"; about {seconds(now.left_s)} left" if now.beliefs.next is not None else ""
        print(f"{now.observations}: {revisions[now.revision].label}: {value}{probable}{left}", file=sys.stderr)

    return report


_WIDTH, _HEIGHT = 1000.0, 340.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 90.0, 20.0, 15.0, 45.0
_TICKS = 5
_MAX_LABELS = 16


_NORMAL_95 = 1.96
"""Standard deviations of a 95 % interval."""


def headline(result: BisectionResult, revisions: Sequence[Revision]) -> str:
    """The answer in one sentence."""
    found = result.beliefs
    names = [_place(culprit, revisions) for culprit in found.culprits]
    wrong = f"wrong with a probability of at most {percent(max(1 - found.probability, 1e-6))}"
    match found.answer:
        case BisectionAnswer.CULPRIT:
            return f"culprit: {names[0]}: {_change(result, found.culprits[0])}; {wrong}"
        case BisectionAnswer.TWO_CULPRITS:
            each = "; ".join(
                f"{name}: {_change(result, culprit)}" for name, culprit in zip(names, found.culprits, strict=True)
            )
            return f"two culprits: {each}; {wrong}"
        case BisectionAnswer.NOT_HERE:
            return f"not in these revisions: good and bad do not differ when measured now; {wrong}"
        case _:
            return f"undecided: {'most probable: ' + ', '.join(names) if names else 'good and bad may not differ'}"


def _place(culprit: Culprit, revisions: Sequence[Revision]) -> str:
    """The revision, or those of which one is it."""
    last = revisions[culprit.last].label
    if culprit.first == culprit.last:
        return last
    count = culprit.last - culprit.first + 1
    return f"one of {count} revisions from {revisions[culprit.first].label} to {last}"


def _change(result: BisectionResult, culprit: Culprit) -> str:
    """By how much the metric changes from one side of a culprit to the other."""
    levels = result.beliefs.levels
    before, after = levels.get(culprit.first - 1), levels.get(culprit.last)
    if before is None or after is None:
        return "change unknown"
    share = percent(exp(after.mean - before.mean) - 1, signed=True)
    return f"{rate(exp(before.mean))} to {rate(exp(after.mean))} ({share})"


def effort(result: BisectionResult, revisions: Sequence[Revision]) -> str:
    """Cost of the bisection."""
    deployments = sum(map(len, result.observed.values()))
    skipped = f", {len(result.skipped)} could not be measured" if result.skipped else ""
    return (
        f"{result.trials} trials in {deployments} deployments of {len(result.observed)} of {len(revisions)} "
        f"revisions{skipped}, {seconds(result.seconds)}"
    )


def as_object(result: BisectionResult, revisions: Sequence[Revision]) -> dict[str, Any]:
    """The result as one JSON object. Rates are in packets per second."""
    found = result.beliefs
    return {
        "answer": found.answer.value if found.answer else None,
        "probability": found.probability,
        "culprits": [
            {
                "revisions": [each.name for each in revisions[culprit.first : culprit.last + 1]],
                "label": _place(culprit, revisions),
                "probability": culprit.probability,
            }
            for culprit in found.culprits
        ],
        "revisions": [
            {
                "number": number,
                "name": revisions[number].name,
                "label": revisions[number].label,
                "values": list(values),
                "level": exp(found.levels[number].mean) if number in found.levels else None,
                "relative_stdev": found.levels[number].stdev if number in found.levels else None,
            }
            for number, values in sorted(result.observed.items())
        ],
        "skipped": [
            {"number": number, "name": revisions[number].name, "reason": reason}
            for number, reason in sorted(result.skipped.items())
        ],
        "trials": result.trials,
        "seconds": result.seconds,
    }


def render_bisection(result: BisectionResult, revisions: Sequence[Revision], title: str, *, simulated: bool) -> str:
    """Return the page; one file that needs no network and no script.

    `revisions`: All of them, in order.
    """
    levels = result.beliefs.levels
    rows = [
        {
            "number": number,
            "label": revisions[number].label,
            "values": [rate(value) for value in values],
            "level": rate(exp(levels[number].mean)) if number in levels else "-",
            "interval": percent(_NORMAL_95 * levels[number].stdev) if number in levels else "-",
            "culprit": any(each.first <= number <= each.last for each in result.beliefs.culprits),
        }
        for number, values in sorted(result.observed.items())
    ]
    return html_templates().get_template("bisection.html.j2").render(
        title=title,
        headline=headline(result, revisions),
        effort=effort(result, revisions),
        simulated=simulated,
        answer=result.beliefs.answer,
        picture=_picture(result, len(revisions)),
        rows=rows,
        skipped=[(revisions[number].label, reason) for number, reason in sorted(result.skipped.items())],
        style=own_file("style/base.css"),
    )  # fmt: skip


def _picture(result: BisectionResult, count: int) -> dict[str, Any]:
    """Coordinates of the drawing: points, intervals, bands of culprits, ticks."""
    values = [value for seen in result.observed.values() for value in seen]
    low, high = min(values), max(values)
    margin = max((high - low) * 0.15, high * 0.01)
    low, high = max(low - margin, 0.0), high + margin

    def across(number: float) -> float:
        return round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * (number + 0.5) / count, 1)

    def up(value: float) -> float:
        share = (min(max(value, low), high) - low) / (high - low)
        return round(_HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * share, 1)

    levels = sorted(result.beliefs.levels.items())
    ticks = [low + (high - low) * tick / (_TICKS - 1) for tick in range(_TICKS)]
    numbers = sorted(result.observed)
    step = -(-len(numbers) // _MAX_LABELS)
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "left": _LEFT,
        "right": _WIDTH - _RIGHT,
        "top": _TOP,
        "bottom": _HEIGHT - _BOTTOM,
        "points": [(across(number), up(value)) for number, seen in sorted(result.observed.items()) for value in seen],
        "levels": [
            (
                across(number),
                up(exp(level.mean)),
                up(exp(level.mean - _NORMAL_95 * level.stdev)),
                up(exp(level.mean + _NORMAL_95 * level.stdev)),
            )
            for number, level in levels
        ],
        "culprits": [
            (across(each.first - 0.5), across(each.last + 0.5) - across(each.first - 0.5))
            for each in result.beliefs.culprits
        ],
        "y_ticks": [(up(value), rate(value)) for value in ticks],
        "x_ticks": [(across(number), str(number)) for number in numbers[::step]],
    }
