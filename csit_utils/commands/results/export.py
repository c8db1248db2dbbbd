"""`export`: results as files of FD.io CSIT's tools."""

import gzip
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from csit_utils.commands.results.inputs import INPUTS, ReadingProgress, opened, report_problems
from csit_utils.dataset.items import Recorded
from csit_utils.report.uti import InfoFile, info_file, suite_files
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.quantities import counted
from resources.libraries.python.studies.density.model import DensityRecord
from resources.libraries.python.whole_files import write_whole

_JOB = r"csit-[a-z0-9_]+-perf-[a-z0-9_.-]{1,150}"
_TYPE = "{type}"
_EXAMPLE = f"csit-DUT-perf-{_TYPE}-daily-master-2n-icx"


def export(
    inputs: INPUTS,
    uti: Annotated[bool, typer.Option("--uti", help="Write result files of FD.io CSIT, model 1.5.1 (UTI).")] = False,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="Folder of the files, created if missing.")
    ] = Path("uti"),
    job: Annotated[
        str | None,
        typer.Option(
            help="Job name, from which C-Dash derives DUT and testbed, such as csit-DUT-perf-{type}-daily-master-"
            "2n-icx; {type} becomes mrr, ndrpdr or soak. Writes to OUTPUT/JOB/BUILD, as on CSIT's log server."
        ),
    ] = None,
    build: Annotated[int, typer.Option(min=1, help="Build number, for --job.")] = 1,
    compress: Annotated[bool, typer.Option("--gzip", help="Write .info.json.gz, as CSIT's ETL expects.")] = False,
) -> None:
    """Export results for FD.io CSIT's dashboard, C-Dash.

    Writes a file per test and suite, which CSIT's ETL reads. Exports MRR, NDR and PDR with latency, and soak tests.
    CSIT's model does not cover latency tests without NDR, studies and results of other tools: they are counted and left
    out. Latency histograms are converted to microseconds. Verdicts become tags such as VERDICT_OVERSUBSCRIBED;
    simulated results have the host and NIC `simulated`.

    \b
    Examples:
    ./csit export results/night/output.xml --uti -o uti --gzip
    """  # noqa: D301 - \b keeps the lines of the examples apart
    if not uti:
        raise ConfigError("no output format given; --uti writes result files of FD.io CSIT")
    if job is not None and not re.fullmatch(_JOB, job.replace(_TYPE, "mrr")):
        raise ConfigError(f"--job {job!r}: not a job name of CSIT's ETL, such as {_EXAMPLE}")
    from csit_utils.analysis.grouping import figures_beside  # noqa: PLC0415 - msgspec costs time of every --help

    contents = opened(inputs).contents()
    rows = {row.anchor: row for row in contents.tests}
    found: dict[tuple[str, ...], InfoFile] = {}
    for item in contents.items():
        if not isinstance(item, Recorded) or not isinstance(item.record, DensityRecord):
            continue
        made = info_file(item.record, figures_beside(rows[item.anchor]))
        if made is None:
            continue
        if made.path in found:
            raise ConfigError(
                f"{item.source}: {made.content['test_id']} occurs more than once; export each run separately, with its "
                "own --build or --output"
            )
        found[made.path] = made
    left_out = len(rows) + len(contents.characterizations) - len(found)
    for folder, tests in _by_folder(output, job, build, found.values()).items():
        _write_all(folder, [*tests, *suite_files(tests)], compress=compress)
        typer.echo(f"{folder}: {counted(len(tests), 'test')} written", err=True)
    if left_out:
        typer.echo(f"{counted(left_out, 'test')} left out: not covered by CSIT's model", err=True)
    report_problems(contents)


def _by_folder(output: Path, job: str | None, build: int, tests: Iterable[InfoFile]) -> dict[Path, list[InfoFile]]:
    """Return tests by folder of their job.

    Raises:
        ConfigError: Tests of several types would share a job: CSIT's ETL derives the type from the path.
    """
    found: dict[Path, list[InfoFile]] = {}
    types: dict[Path, set[str]] = {}
    for test in tests:
        kind = test.content["test_type"]
        folder = output / job.replace(_TYPE, kind) / str(build) if job else output
        found.setdefault(folder, []).append(test)
        types.setdefault(folder, set()).add(kind)
    if job:
        for folder, kinds in types.items():
            if len(kinds) > 1:
                raise ConfigError(
                    f"{folder}: tests of {' and '.join(sorted(kinds))} in one job; write {_TYPE} in --job"
                )
    return found


def _write_all(folder: Path, files: Iterable[InfoFile], *, compress: bool) -> None:
    todo = list(files)
    with ReadingProgress("files") as progress:
        for number, file in enumerate(todo, 1):
            path = folder.joinpath(*file.path)
            text = json.dumps(file.content, indent=2, sort_keys=True).encode()
            named = path.with_name(f"{path.name}.gz") if compress else path
            write_whole(named, gzip.compress(text) if compress else text)
            progress(number, len(todo))
