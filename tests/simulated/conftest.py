"""Runs of all studies on the simulated testbed, each made once, for all tests that read their results."""

from pathlib import Path

import pytest

from tests.loaded import Dataset, load
from tests.simulated.in_process import SIM, STUDIES, Ended, passed, robot_words, topology_with

MATRIX = ("-v", "CELLS:1x1,2x2", "-v", "NF_SIZES:1c", "-v", "SEARCH:quick")
"""Two cells, by service type and test type."""
SHORT = (
    *("-v", "SET:outage.rate_pps=2000;outage.repetitions=2;interference.repetitions=2;chains.duration_s=3"),
    *("-v", "SET:stateful.search=quick,width=0.05,trial=0.02,sum=0.02", "-v", "STACKS:10"),
)
"""Fewer packets, seconds and repetitions, and a short search of the connection rate."""
LEFT_OUT = ("CLEARWATER", "SIP", "HTTP", "INTRUSION", "STATEFUL AND NAT", "OUTAGE AND FIREWALLS", "OUTAGE AND CHAINS")
"""Tags of tests that take long, or need programs of the machine."""
TABLE_ENTRIES = 32_768
"""Size of the simulated tables of connections."""
SLOWER = 0.8
"""Capacity of the slower system, as a share of that of the first one."""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("simulated")


@pytest.fixture(scope="session")
def density(folder: Path) -> Path:
    """All density suites: 3 service types, 3 test types, 2 cells."""
    passed(*robot_words(folder / "density", SIM, *MATRIX))
    return folder / "density"


@pytest.fixture(scope="session")
def studies(folder: Path) -> Path:
    """At least one test of each other study."""
    topology = topology_with(folder / "sim.yaml", state_tables={"limit": TABLE_ENTRIES})
    chosen = [word for tag in LEFT_OUT for word in ("--exclude", tag)]
    passed(*robot_words(folder / "studies", topology, *SHORT, *chosen, sources=[STUDIES]))
    return folder / "studies"


@pytest.fixture(scope="session")
def matrix(density: Path) -> Dataset:
    """The density tests, from output.xml alone."""
    return load([density / "output.xml"])


@pytest.fixture(scope="session")
def studied(studies: Path) -> Dataset:
    """The tests of the other studies, from output.xml alone."""
    return load([studies / "output.xml"])


@pytest.fixture(scope="session")
def history(folder: Path, density: Path, studies: Path) -> Path:
    passed("import", density, studies, "-o", folder / "history", "--label", "first", "--processes", "1")
    return folder / "history"


@pytest.fixture(scope="session")
def shown(density: Path, studies: Path) -> Ended:
    return passed("show", density / "output.xml", studies / "output.xml", "--format", "json")


@pytest.fixture(scope="session")
def baseline(folder: Path) -> Path:
    """A matrix of eight cells with call stacks, enough cells to compare single runs."""
    return _compared(folder / "baseline", SIM)


@pytest.fixture(scope="session")
def repeated(folder: Path) -> Path:
    """The same system with other noise."""
    return _compared(folder / "repeated", topology_with(folder / "repeated.yaml", seed=2))


@pytest.fixture(scope="session")
def slower(folder: Path) -> Path:
    """A system with less capacity, one of whose functions takes three times as long."""
    topology = topology_with(folder / "slower.yaml", capacity_scale=SLOWER, hot={"sim_filter": 3})
    return _compared(folder / "slower", topology)


def _compared(output: Path, topology: Path) -> Path:
    chosen = ("-v", "CELLS:1-4x1-2", "-v", "NF_SIZES:1c", "-v", "SEARCH:quick", "-v", "STACKS:10")
    passed(*robot_words(output, topology, *chosen, "--suite", "csc-ndrpdr"))
    return output
