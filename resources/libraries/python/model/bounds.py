"""Upper bounds of everything that is read: files, lists, numbers, specifications, selections and runs.

Modules that are sent to nodes keep theirs beside the code, as do `errors`, `dialogue` and `planning.address_bounds`.
Drivers keep those of their programs.
"""

from collections.abc import Iterable

from resources.libraries.python.errors import ConfigError, shortened
from resources.libraries.python.redaction import redacted

LARGEST_INPUT_BYTES = 1 << 20
"""Maximum size of a topology, specification or table that a person writes. The largest real one has 100 kB."""
DEEPEST_NESTING = 40
"""Maximum depth of mappings and lists in YAML and JSON."""
MAX_ITEMS = 200_000
"""Values, keys and collections of a YAML file, each alias counted as the tree that it repeats."""
LONGEST_NUMBER = 100
"""Characters of a number."""
LONGEST_QUOTE = 200
"""Characters of bad input that a message repeats."""
LONGEST_REASON = 400
"""Characters of a sentence that says what is wrong with a value."""
MAX_LISTED = 65_536
"""Numbers of a list such as `0-3,8`."""
MAX_RUNS = 1_000_000
"""Tests of a selection, measurements of a study, runs of a sizing's generator."""
MAX_NFS = 1024
"""Network functions of one cell. The matrix of the draft ends at 10 x 10."""
MAX_FRAMES = 10_000
"""Frames of a selection: sizes, by version of IP and number of flows."""
MAX_VSWITCH_CORES = 4
"""Data cores of a vSwitch."""
MAX_TEMPLATE_LENGTH = 200
MAX_WILDCARDS = 4
"""Of a template of file names: each multiplies the time of a match."""
MAX_PARTS = 0xFFFF
"""Service instances of a cell, and NFs of each, also in records: no address plan holds more."""
MAX_NFS_OF_A_SELECTION = 100_000
"""Of all its cells together, whose plans are all made before the first one is measured."""
DAY_S = 86_400
LONGEST_RUN_S = 365 * DAY_S
"""Maximum duration of all of them together, as estimated."""
LONGEST_TRIAL_S = DAY_S
"""Maximum duration of one load."""
LONGEST_LOAD_S = 3600
"""Maximum duration of one load of a sweep or of a chain, chosen by a variable: it is sampled each second."""
MAX_REPETITIONS = 1000
MAX_TOGETHER = 64
"""Network functions on one server."""
MAX_VERIFIED = 16
"""Placements of network functions that one study measures."""
MAX_ROUNDS = 3
"""Further repetitions of the two best placements, while they cannot be told apart."""
MAX_NAMES = 200
"""Network functions, policies or lengths of a study."""
MAX_WORKLOADS = 1000
"""Maximum number of workloads of a study of chains."""
MAX_SWEEP_LOADS = 1000
MAX_SIZING_LOADS = 10_000
MAX_SIZES = 10_000
"""Maximum number of sizes of a service that is sized."""
LATEST_S = 1e12
"""Maximum of a time in seconds since the epoch."""
MAX_SAMPLES = 10_000
"""Maximum number of readings of an energy meter in one trial."""
HIGHEST_READING = 1e12
"""Maximum of an energy meter's reading, in joules or watts."""
HIGHEST_PARAMETER = 1e12
"""Maximum of a parameter of a simulated system."""
LARGEST_ANSWER_BYTES = 1 << 20
"""Maximum size of the answer of a BMC to one request."""
LONGEST_REQUEST_S = 90.0
"""Maximum duration of a connection to an OTG server, from its first byte to the end of the answer."""
MAX_SETS = 2**14
"""Maximum number of sets of VNFs, that are looked at one by one to count chains; 14 VNFs of any length."""
HIGHEST_PPS = 1e12
HIGHEST_BPS = 1e15
MAX_MEMORY_MIB = 2**24
"""16 TiB."""

MAX_RATIO = 200
"""Largest compression ratio of a file: output.xml files have 2 to 50, deflate reaches 1,032."""
MAX_RECORD_RATIO = 50
"""Maximum compression ratio of the packed part of a record or a histogram, which have 2 to 10."""
FREE_BYTES = 4_000_000
"""Unpacked size that is permitted for any file."""
FREE_RECORD_BYTES = 64_000
LARGEST_RECORD_BYTES = 256_000_000
MAX_DEPTH = 3
"""Maximum depth of nested archives."""
MAX_TABLE_RATIO = 200
"""Maximum of what the bytes of a Parquet file stand for: its pages unpacked; and its rows in memory. Rows of tests have
35, and 130 where the same tests are in a file many times."""
ROW_BYTES = 2_500
"""What a row takes beside its texts and numbers."""
VALUE_BYTES = 8
"""What a value of a list takes beside its text, also where it is null."""
MAX_TABLE_COLUMNS = 2_000
"""Of a Parquet file; those of all studies have 500."""
MAX_TABLE_ITEMS = 100_000
"""Of a list in its footer."""
MAX_ROWS_TOGETHER = 8_192
"""Rows that are read before their size is seen."""
REPEATED_BYTES = 4_000_000
"""Texts that are read before their size is seen, where all rows may repeat the longest one."""
MAX_QUERY_BYTES = 4_000_000_000
"""Memory of DuckDB, which a query of a dataset may use."""
FREE_S, MAX_S_PER_MB = 20.0, 5.0
"""CPU time of decompression: permitted for any file, and by packed size. It takes about 0.1 s per packed MB."""
MAX_FILES = 50_000
"""In one archive, or tables in one bucket."""
MAX_BUCKET_BYTES = 50_000_000_000
"""Tables copied from one bucket; those of CSIT since 2021 have some GB."""
LARGEST_DIRECTORY_BYTES = 16_000_000
"""Maximum size of the directory of an archive."""
LARGEST_OUTPUT_BYTES = 64 << 20
"""Output of a program that runs to its end, on a node or here."""
LARGEST_CORE_BYTES = 4 << 30
"""Size on disk of a core file that is kept; three of them are."""
MAX_DAMAGE = 1000
"""Damaged places of an output.xml that are looked at."""
DEEPEST_ELEMENT = 1000
"""Maximum depth of elements in a test: Robot permits 100 nested keywords."""
LARGEST_TEST_BYTES = 256 * 1024 * 1024
"""Upper bound of a test, which is held in memory as a whole."""
LARGEST_BETWEEN_BYTES = 16_000_000
"""Maximum size of a message or metadata between tests."""
MAX_UNRECORDED = 20_000
"""Tests without a record, of which nothing is known but the name."""
LARGEST_RESULT_BYTES = 256 * 1024 * 1024
"""Maximum size of a result file."""
MAX_VALUES_OF_A_RESULT = 200_000
MAX_KEYS = 10_000
"""Maximum number of keys of one object. Instances, nodes and drivers are keys of some objects."""
MAX_DIGITS = 10
"""Of a number in a list such as `0-3,8`."""
MAX_REVISIONS = 10_000
"""Of a bisection."""
MAX_OBSERVATIONS = 2_000
"""Deployments of a bisection."""
LONGEST_INSTALLATION_S = 7 * 24 * 3600
MAX_EVENTS = 100
"""Of a study of outages."""
MAX_ACKNOWLEDGED = 10_000
"""Acknowledged steps of a history."""
LONGEST_CAUSE = 500
"""Characters of the cause of an acknowledged step, and of the name of its cell."""
LONGEST_LINK = 2_000
"""Characters of a link."""
MAX_DISTURBED_INSTANCES = 64
LONGEST_WINDOW_S = 60.0
"""Maximum time before, after and during an event of a study of outages."""
LONGEST_TIMEOUT_S = 3600
"""Of an entry in a connection table."""
MAX_SWEPT = 16
"""Frame sizes, and loads, of one study at most."""
MAX_BRACKETS = 20
"""Depth of parentheses in a policy of chains."""
MAX_CAPTURE_BYTES = 16 << 20
MAX_CAPTURED_PACKETS = 8192
"""A ring of a sender holds all of them, for each service instance and direction."""
MAX_CACHE_WAYS = 64
"""Of a last-level cache: bits of a mask."""
MAX_CORES = 256
"""Maximum number of cores of one NF: above what a NUMA node of today's servers has."""
MAX_ERRORS = 1000
"""Maximum number of errors of one file that are looked at."""

MAX_STACKS = 1000
"""Kept call stacks of a node; a vSwitch and two NFs of the kernel have about 300 different ones in 2,000 samples."""
LONGEST_FUNCTION, DEEPEST_STACK = 120, 100
"""Characters of a function's name; functions of a call stack."""
LONGEST_STACK = (LONGEST_FUNCTION + 1) * (DEEPEST_STACK + 2)
"""Characters of a folded stack: the owner and the mark of functions left out come on top."""
MAX_PORT_STATISTICS = 4_096
"""Counters of a port's driver; one with 128 queues has about 2,000."""
MAX_HOST_COUNTERS = 20_000
"""Counters and levels of a machine in one reading; one with 256 interrupts on 16 data CPUs has about 4,500."""
MAX_NODE_COSTS = 20_000
"""Rows of costs by node in a record; VPP has about 20 for each worker."""

ASKED = {"asked": True}
"""Context in which a specification is validated. Models of records, validated without it, have no upper bounds."""


def quoted(text: str, most: int = LONGEST_QUOTE) -> str:
    """Bad input as a message repeats it: no secrets, one line, visible control characters, at most `most` long."""
    shown: list[str] = []
    left, text = most, redacted(text)
    for letter in text[: most + 1]:
        visible = letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        left -= len(visible)
        if left < 0:
            return f"{''.join(shown)}… ({len(text):,} characters)"
        shown.append(visible)
    return "".join(shown)


def quoted_reason(text: str) -> str:
    """Sentence of an error as a message repeats it: as `quoted`, but with its end, which names the cause."""
    return shortened(text.replace("\n", "\\n"), LONGEST_REASON)


def dotted(path: Iterable[object]) -> str:
    """Path of a key in a file as a message repeats it: `nodes.DUT1.cpus.0`; keys are input too."""
    return quoted(".".join(map(str, path)))


def refuse_endless(what: str, runs: int, unit: str, seconds: float = 0.0) -> None:
    """Refuse a run of more than `MAX_RUNS` measurements or of more than `LONGEST_RUN_S`.

    Raises:
        ConfigError: With the number and the bound.
    """
    if runs > MAX_RUNS:
        raise ConfigError(f"{what}: {runs:,} {unit}; at most {MAX_RUNS:,} are possible")
    if seconds > LONGEST_RUN_S:
        days = f"{seconds / DAY_S:,.0f} days"
        raise ConfigError(f"{what}: {runs:,} {unit} take about {days}; at most {LONGEST_RUN_S // DAY_S} are possible")
