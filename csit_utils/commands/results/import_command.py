"""`import`: add results to a dataset."""

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from csit_utils.commands.results.inputs import INPUTS, ReadingProgress, print_problems, shown_imports
from csit_utils.commands.tables import TABLE_OR_JSON, TableForm, print_sentence
from csit_utils.dataset.items import ImportedTest
from resources.libraries.python.errors import ConfigError, message
from resources.libraries.python.model.bounds import quoted
from resources.libraries.python.quantities import counted

if TYPE_CHECKING:
    from csit_utils.dataset.foreign.bucket import Bucket


def import_(
    inputs: INPUTS,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="Folder of the dataset, created if missing.")
    ],
    label: Annotated[
        str | None, typer.Option(help="Label of the runs, such as a release; a run keeps its first label.")
    ] = None,
    place: Annotated[
        str | None,
        typer.Option(
            metavar="TEMPLATE",
            help="How names of files state the cells of tests that do not: {service}, {instances}, {nfs}, "
            "{vswitch_cores}, {nf_cores}; * is any text, and {nf_cores=1} the same for all.",
        ),
    ] = None,
    form: TABLE_OR_JSON = TableForm.TABLE,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Number of worker processes; default: one per CPU.")
    ] = None,
) -> None:
    """Add results to a dataset, which is read faster than files.

    Reads outputs of Robot Framework (XML or JSON, also compressed), result records (.json), result files and Parquet
    tables of FD.io CSIT, results of NFVbench and DPDK's DTS, ZIP archives, and folders of these. Tables in a bucket
    (S3) are copied into the dataset's folder `buckets` first, those that are new or have changed. Files with the same
    content are added once, whatever their names. Files that cannot be read in full are reported, and the others are
    imported; the exit status is then 1.

    \b
    Examples:
    ./csit import results/ -o history --label nightly
    ./csit import /archive/2026-11.zip -o history
    ./csit import nfv/ -o density --place '{service}_{instances}c{nfs}n'
    ./csit import 's3://BUCKET/csit/parquet?region=eu-central-1' -o history
    ./csit report history -o site
    """  # noqa: D301 - \b keeps the lines of the examples apart
    from csit_utils.dataset.foreign.bucket import Bucket, is_address  # noqa: PLC0415 - pyarrow costs time of every --help
    from csit_utils.dataset.foreign.place import NameTemplate  # noqa: PLC0415 - pydantic costs time of every --help
    from csit_utils.dataset.store.batch import imported_twice  # noqa: PLC0415 - as above
    from csit_utils.dataset.store.layout import Layout  # noqa: PLC0415 - as above
    from csit_utils.dataset.store.tables import convert_without_pandas  # noqa: PLC0415 - as above

    convert_without_pandas()
    buckets = {path: Bucket.parse(str(path)) for path in inputs if is_address(str(path))}
    if missing := [path for path in inputs if path not in buckets and not path.exists()]:
        raise ConfigError(f"{quoted(str(missing[0]))} does not exist; nothing was imported")
    template = NameTemplate(place) if place is not None else None
    layout = Layout.make(output)
    inputs = [_copied(buckets[path], output / "buckets") if path in buckets else path for path in inputs]
    run = os.path.commonpath([path.resolve() for path in inputs])
    frames, others = Counter[str](), list[str]()

    def placed(item: ImportedTest) -> ImportedTest:
        if template is None or item.row.service_type is not None:
            return item
        found = template.placed(item, run)
        if found.row.service_type is None:
            others.append(item.row.source)
            return found
        frames[found.row.frame or "unknown"] += 1
        # A file for each test: commands that read the newest run read the whole matrix.
        return replace(found, row=replace(found.row, run=run))

    before = layout.digests()
    tests, files, problems = 0, Counter[str](), list[str]()
    with layout.writing(lambda: typer.echo(f"{output}: waiting for another import to finish", err=True)):
        for outcome in shown_imports(layout, inputs, label, processes, placed=placed):
            files.update({name: int(getattr(outcome, name)) for name in ("files", "added", "earlier", "repeated")})
            tests += 0 if outcome.known else outcome.tests
            problems += outcome.problems
        twice = imported_twice(layout, before)
    print_problems([message(text) for text in problems])
    if form is TableForm.JSON:
        figures = {"dataset": str(output), "files": files["files"], "known": files["earlier"]}
        figures |= {"repeated": files["repeated"], "tests": tests - twice, "same_tests": twice, "problems": problems}
        figures |= {"placed": frames.total(), "not_placed": len(others)}
        typer.echo(json.dumps(figures))
    else:
        print_sentence(f"{output}: {'; '.join(_done(tests - twice, twice, files))}")
        if template is not None:
            for sentence in _placed(template.text, frames, others, files["earlier"]):
                print_sentence(sentence)
    if problems:
        raise typer.Exit(1)


def _copied(bucket: "Bucket", folder: Path) -> Path:
    with ReadingProgress("MB") as progress:
        return bucket.copy(folder, lambda done, size: progress(done / 1e6, max(1, round(size / 1e6))))


def _done(tests: int, twice: int, files: Mapping[str, int]) -> Iterator[str]:
    added, earlier, repeated = (counted(files[name], "file") for name in ("added", "earlier", "repeated"))
    yield f"{counted(tests, 'test')} of {added} added" if files["added"] else "nothing added"
    if twice:
        yield f"{counted(twice, 'test')} the same as in another file"
    if files["repeated"]:
        yield f"{repeated} with the same results as others of this import"
    if files["earlier"]:
        yield f"{earlier} already there"


def _placed(template: str, frames: Mapping[str, int], others: Sequence[str], earlier: int) -> Iterator[str]:
    """Yield what became of the tests: those placed by frame, and the files of the others."""
    text = f"{counted(sum(frames.values()), 'test')} placed, {len(others)} not"
    yield f"{text}: names of files that are not of the form {template}, such as {quoted(others[0])}" if others else text
    if len(frames) > 1:
        counts = (f"{frame} in {counted(count, 'test')}" for frame, count in sorted(frames.items()))
        yield f"frame sizes, as the files state them: {'; '.join(counts)}"
    if earlier:
        yield "files already there keep their places; another template needs a new folder"
