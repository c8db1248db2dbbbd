"""`python -m csit_utils.bench.nights FOLDER`: make a history, `FOLDER/<testbed>/<date>/output.xml`."""

import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Annotated

import typer

from csit_utils.bench.nights.measuring import Night
from csit_utils.bench.nights.story import Story, story
from csit_utils.bench.nights.writing import write_night
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.recording.environment import fingerprint
from resources.libraries.python.search.profiles import profile
from resources.libraries.python.studies.density.model.selection import DRAFT_GRID, parse_selection

_FEWEST_NIGHTS = 10


def make(  # noqa: PLR0917 - options of a command line have names
    folder: Annotated[Path, typer.Argument(help="Where to write.")],
    nights: Annotated[int, typer.Option(help="How many, at least 10.")] = 30,
    testbeds: Annotated[int, typer.Option(min=1, max=3, help="How many, 1 to 3.")] = 3,
    cells: Annotated[str, typer.Option(help="Of the matrix; those that do not fit are left out.")] = DRAFT_GRID,
    search: Annotated[str, typer.Option(help="Search profile.")] = "ladder",
    processes: Annotated[int, typer.Option(min=1, help="To work at the same time.")] = 1,
) -> None:
    """Make a history of simulated nights with planted regressions, two-band cells, failures and gaps.

    All cells of the matrix of 2-node testbeds, three testbeds and 30 nights are 10,032 tests.

    Example: python -m csit_utils.bench.nights /tmp/nights --nights 20 --cells '{1,2}x1' --search quick
    """
    if nights < _FEWEST_NIGHTS:
        raise ConfigError(f"--nights {nights}: planted steps need {_FEWEST_NIGHTS} at least")
    tests = write_story(story(nights, testbeds), folder, cells, search, processes)
    typer.echo(f"{folder}: {tests} simulated tests")


def write_story(told: Story, folder: Path, cells: str, search: str, processes: int = 1) -> int:
    """Write a history; return how many tests it has."""
    topology, environment = load_topology(PROJECT / "topologies" / "sim.yaml"), fingerprint()
    selection, asked = parse_selection(cells=cells, nf_sizes="1c"), profile(search)
    work = [
        Night(told, testbed, number, topology, selection, asked, environment)
        for number in range(told.nights)
        for testbed in told.testbeds
        if not told.missing(testbed, number)
    ]
    paths = [folder / night.testbed / night.started_at.date().isoformat() / "output.xml" for night in work]
    if processes == 1:
        return sum(map(write_night, work, paths))
    with ProcessPoolExecutor(processes) as pool:
        return sum(pool.map(write_night, work, paths))


if __name__ == "__main__":
    try:
        typer.run(make)
    except ConfigError as error:
        sys.exit(str(error))
