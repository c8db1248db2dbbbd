"""`export`: results in the form of another project's tools."""

import gzip
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from csit_utils.commands.progress import Progress
from csit_utils.commands.reading import INPUTS, read, tell_problems
from csit_utils.report.uti import InfoFile, info_file, suite_files
from resources.libraries.python.errors import ConfigError

_JOB = r"csit-[a-z0-9_]+-perf-[a-z0-9_.-]{1,150}"
_TYPE = "{type}"
_EXAMPLE = f"csit-vpp-perf-{_TYPE}-daily-master-2n-icx"


def export(
    inputs: INPUTS,
    uti: Annotated[bool, typer.Option("--uti", help="As result files of FD.io CSIT, model 1.5.1 (UTI).")] = False,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the files; made where needed.")] = Path(
        "uti"
    ),
    job: Annotated[
        str | None,
        typer.Option(
            help="Name of the job, from which the dashboard takes DUT and testbed: csit-vpp-perf-{type}-daily-master-"
            "2n-icx. Files then go to OUTPUT/JOB/BUILD, as on CSIT's log server; {type} is mrr, ndrpdr or soak."
        ),
    ] = None,
    build: Annotated[int, typer.Option(min=1, help="Number of the job's run, for --job.")] = 1,
    compress: Annotated[bool, typer.Option("--gzip", help="Write .info.json.gz, which CSIT's ETL looks for.")] = False,
) -> None:
    """Write results as files that FD.io CSIT's ETL and dashboard (C-Dash) read: one for each test and for each suite.

    MRR, NDR and PDR with latency, and soak tests are written; CSIT's model has no place for latency tests without NDR,
    studies and results of other tools, which are counted and left out. Histograms of latency are in microseconds there.
    What a figure is worth is in tags there, such as VERDICT_OVERSUBSCRIBED; simulated results are of the host and NIC
    `simulated`.

    Example: ./csit export results/night/output.xml --uti -o uti --gzip
    """
    if not uti:
        raise ConfigError("say in which form: --uti writes FD.io CSIT's result files")
    if job is not None and not re.fullmatch(_JOB, job.replace(_TYPE, "mrr")):
        raise ConfigError(f"--job {job!r}: CSIT's ETL does not find such a name; one is {_EXAMPLE}")
    dataset = read(inputs)
    found: dict[tuple[str, ...], InfoFile] = {}
    left_out = len(dataset.characterizations) + len(dataset.foreign) + len(dataset.unrecorded)
    for item in dataset.recorded:
        made = info_file(item.result)
        if made is None:
            left_out += 1
        elif made.path in found:
            raise ConfigError(
                f"{item.source}: {made.content['test_id']} is there more than once; export each run by itself, with a "
                "--build or an --output of its own"
            )
        else:
            found[made.path] = made
    for folder, tests in _by_folder(output, job, build, found.values()).items():
        _write_all(folder, [*tests, *suite_files(tests)], compress=compress)
        typer.echo(f"{folder}: {len(tests)} tests written", err=True)
    if left_out:
        typer.echo(f"{left_out} tests left out: CSIT's model has no place for them", err=True)
    tell_problems(dataset)


def _by_folder(output: Path, job: str | None, build: int, tests: Iterable[InfoFile]) -> dict[Path, list[InfoFile]]:
    """Tests by the folder of their job.

    Raises:
        ConfigError: Tests of several types would share a job: CSIT's ETL knows types by words in paths.
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
    with Progress("files") as progress:
        for number, file in enumerate(todo, 1):
            path = folder.joinpath(*file.path)
            text = json.dumps(file.content, indent=2, sort_keys=True).encode()
            _write(path.with_name(f"{path.name}.gz") if compress else path, gzip.compress(text) if compress else text)
            progress(number, len(todo))


def _write(path: Path, content: bytes) -> None:
    """In one step: a reader sees the whole file or none."""
    part = path.with_name(f".{path.name}"[:240] + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content)
        part.replace(path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error
