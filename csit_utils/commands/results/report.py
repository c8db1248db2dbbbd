"""`report`: HTML pages and CSV files."""

import os
from collections.abc import Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from csit_utils.analysis.runs import newest
from csit_utils.commands.results.inputs import INPUTS, MAX_TESTS, ReadingProgress, from_contents, report_problems
from csit_utils.dataset.ledger import acknowledged_in
from csit_utils.dataset.reference import names, paper, paper_names
from resources.libraries.python import special_functions
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import quoted
from resources.libraries.python.whole_files import write_whole

if TYPE_CHECKING:
    from csit_utils.dataset.store.stored_contents import Stored

_DETAILS = ("all", "latest", "none")
_PAGE = (".html", ".htm")
_FORMATS = (".pdf", ".csv", ".json", ".xml", ".md", ".xlsx", ".zip", ".png")
"""Formats that a user may hope for, and that would be surprising as the name of a folder."""


def report(
    inputs: INPUTS,
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="FOLDER", help="Folder of the pages, or one .html file for all of them."
        ),
    ] = Path("report"),
    single_file: Annotated[
        bool, typer.Option("--single-file", help="Write one file, OUTPUT.html, instead of a folder.")
    ] = False,
    mean: Annotated[
        bool, typer.Option("--mean", help="Show means over all runs instead of the latest run per testbed.")
    ] = False,
    details: Annotated[
        str | None,
        typer.Option(
            help="Tests that get their own page: all, latest or none. Default: all; with more than 2,000 tests those "
            "of the latest runs (up to 2,000), failed ones and changes."
        ),
    ] = None,
    reference: Annotated[
        list[str] | None,
        typer.Option(help=f"Published figures to show as well: {', '.join((*names(), *paper_names()))}."),
    ] = None,
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="A B", help="Initial selection of the compare page, such as 'lab-1 26.06' 'lab-1 26.10'."),
    ] = None,
    url: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="Address at which the folder will be published, for links in message.html and message.md.",
        ),
    ] = "",
    csv: Annotated[
        Path | None,
        typer.Option(
            "--csv",
            metavar="FOLDER",
            help="Also write CSV files of tests, latency, trials, flows and studies to this folder.",
        ),
    ] = None,
    max_tests: MAX_TESTS = 25_000,
) -> None:
    """Write HTML pages: matrices, plots, latency, every trial.

    The pages need no network access. Of several runs of a testbed, the matrices show the latest. A folder also has
    message.html, the body of an e-mail, and message.md, a chat message, with what changed and what failed.

    \b
    Examples:
    ./csit report results/20261121-122909/output.xml
    ./csit report monday/output.xml tuesday/output.xml --mean -o both.html
    ./csit report results/ -o site --reference fdio-2019
    """  # noqa: D301 - \b keeps the lines of the examples apart
    if details is not None and details not in _DETAILS:
        raise ConfigError(f"--details {details}: choose from {', '.join(_DETAILS)}")
    if url and not url.startswith(("https://", "http://")):
        raise ConfigError(f"--url {quoted(url)}: expected an address that begins with https:// or http://")
    if (suffix := output.suffix.lower()) in _FORMATS and not output.is_dir():
        instead = "a browser prints it as PDF" if suffix == ".pdf" else "for other formats see ./csit export"
        raise ConfigError(f"-o {quoted(str(output))}: a report is a folder of pages, or one .html file; {instead}")
    if suffix not in _PAGE and not single_file and output.is_file():
        raise ConfigError(f"-o {quoted(str(output))} is a file; a report is a folder of pages, or one .html file")
    wanted = list(dict.fromkeys(reference or ()))
    if unknown := [name for name in wanted if name not in (*names(), *paper_names())]:
        raise ConfigError(f"no reference set '{unknown[0]}'; choose from {', '.join((*names(), *paper_names()))}")
    published = [name for name in wanted if name in names()]
    papers = [paper(name) for name in wanted if name in paper_names()]
    known = acknowledged_in(inputs)

    def written(found: "Stored") -> "tuple[Stored, Sequence[Path]]":
        from csit_utils.report.pages.compare import comparable  # noqa: PLC0415 - see _loaded
        from csit_utils.report.report_context import Details, ReportContents  # noqa: PLC0415 - see _loaded
        from csit_utils.report.site import single_file as in_one  # noqa: PLC0415 - as above
        from csit_utils.report.site import write_site  # noqa: PLC0415 - as above

        chosen = Details(details) if details else None
        shown = ReportContents(found, mean=mean, details=chosen, compared=compare, papers=papers, acknowledged=known)
        for name in compare or ():
            _check_side(name, list(comparable(shown)))
        if single_file or output.suffix in _PAGE:
            page = output if output.suffix in _PAGE else output.with_name(f"{output.name}.html")
            with ReadingProgress("pages") as progress:
                write_whole(page, in_one(shown, progress))
        else:
            with ReadingProgress("pages") as progress:
                page = write_site(shown, output, processes=os.cpu_count() or 1, progress=progress, url=url)
        if csv is None:
            return found, [page]
        from csit_utils.dataset.flatten import TABLES, write_csv  # noqa: PLC0415 - see _loaded
        from csit_utils.report.characterizations import write_characterizations  # noqa: PLC0415 - as above

        tables = write_csv(found.tests, found.rows(*TABLES), csv)
        return found, [page, *tables, *write_characterizations(found.characterizations, csv)]

    found, files = from_contents(inputs, written, partial(newest, max_tests=max_tests), published, _loaded)
    for path in files:
        typer.echo(str(path))
    report_problems(found.problems)


def _loaded() -> None:
    """Load the code of all pages, which takes half a second of CPU time and needs no results."""
    from csit_utils.report.html import compile_templates  # noqa: PLC0415 - plotly costs half a second of --help
    from csit_utils.report.site import every_page  # noqa: PLC0415 - as above

    every_page()
    compile_templates()
    _ = special_functions.bdtrc  # for trends and searches


_MAX_NAMES = 12


def _check_side(name: str, known: Sequence[str]) -> None:
    if name not in known:
        close = get_close_matches(name, known, n=3) or known[:_MAX_NAMES]
        raise ConfigError(f"--compare '{name}': no such run, release or testbed; choose from {', '.join(close)}")
