"""Robot variables of the suites, each declared once: `robot -v LOSSES:1` gives what `LOSSES.of(lookup)` returns.

Help, the documentation of suites, journals, command lines that repeat a test, and the refusal of unknown names and
wrong values before a run follow from this table. How to add one: docs/how-to/add-a-variable.md.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.bounds import LONGEST_NUMBER, quoted

_Value = TypeVar("_Value")
Lookup = Callable[[str], object]
"""Returns what is given for a variable, None for nothing."""


@dataclass(frozen=True, slots=True)
class Variable(Generic[_Value]):
    """A variable of suites."""

    name: str
    parse: Callable[[str], _Value]
    """Returns the value of a text, also of an empty one; a ValueError says what is expected."""
    meaning: str
    example: str
    studies: tuple[str, ...]
    """Studies that read it, by the names of their folders; empty for all."""
    default: str
    tag: tuple[str, str]
    """Tag of density tests that implies a value, without `_`, and that value; empty for none."""

    def text(self, lookup: Lookup) -> str:
        """What is given, else what tags to include imply, else the default.

        So `--include 2CANDIMIX` selects rows of that vSwitch size and frame, which the defaults do not have. Patterns
        with wildcards imply nothing: they select among the defaults.
        """
        given = lookup(self.name)
        if isinstance(given, list | tuple):
            given = ";".join(map(str, given))
        return str(given or self._implied(lookup) or self.default)

    def of(self, lookup: Lookup) -> _Value:
        """Return its value.

        Raises:
            ConfigError: It cannot have that value.
        """
        text = self.text(lookup)
        try:
            return self.parse(text)
        except ValueError as error:
            raise ConfigError(f"{self.name} '{quoted(text)}': expected {error}; it is: {self.meaning}") from error

    def _implied(self, lookup: Lookup) -> str:
        if not self.tag[0]:
            return ""
        patterns = [each.split("NOT")[0] for each in getattr(lookup("OPTIONS"), "include", None) or ()]
        tags = [re.sub(r"[\s_]", "", each).upper() for pattern in patterns for each in re.split(r"AND|OR", pattern)]
        matches = (re.fullmatch(self.tag[0], each) for each in tags)
        return ",".join(dict.fromkeys(self.tag[1].format(*match.groups("")) for match in matches if match))


VARIABLES: dict[str, Variable[Any]] = {}
"""All of them, by name."""


def _declared(
    name: str,
    parse: Callable[[str], _Value],
    meaning: str,
    example: str,
    *studies: str,
    default: str = "",
    tag: tuple[str, str] = ("", ""),
) -> Variable[_Value]:
    VARIABLES[name] = found = Variable(name, parse, meaning, example, studies, default, tag)
    return found


def read_by(study: str) -> Iterator[Variable[Any]]:
    """Variables that a study reads."""
    return (each for each in VARIABLES.values() if not each.studies or study in each.studies)


def texts(lookup: Lookup, study: str | None = None) -> dict[str, str]:
    """Return what is given, implied or the default of all variables, or of those of a study, by name, for records.

    Testbed and folder of the run are not among them: records have them in their own fields.
    """
    rows = VARIABLES.values() if study is None else read_by(study)
    return {each.name: text for each in rows if each not in {TOPOLOGY, RESUME} and (text := each.text(lookup))}


def _number(low: float, high: float, unit: str = "") -> Callable[[str], float | None]:
    """Parse a number within bounds; None for an empty text."""

    def parse(text: str) -> float | None:
        try:
            found = float(text or low)
        except ValueError:
            found = float("nan")
        if not low <= found <= high:
            raise ValueError(f"{low:g} to {high:g}{unit}")
        return found if text else None

    return parse


def _whole(low: int, high: int) -> Callable[[str], int | None]:
    """Parse a whole number within bounds; None for an empty text."""

    def parse(text: str) -> int | None:
        is_number = text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER
        if text and not (is_number and low <= int(text) <= high):
            raise ValueError(f"a whole number from {low} to {high}")
        return int(text) if text else None

    return parse


def _switch(text: str) -> bool:
    if text not in {"on", "off"}:
        raise ValueError("on or off")
    return text == "on"


def _rate(text: str) -> float | None:
    if (found := _number(0, 1e9)(text)) == 0:
        raise ValueError("more than 0 and at most 1e9")
    return found


def _noise_s(text: str) -> float:
    found = _number(0, 10, " seconds")(text)
    if found is not None and 0 < found < 0.1:
        raise ValueError("0.1 to 10 seconds, or 0 for not at all")
    return 0.9 if found is None else found  # sees most of what recurs each second, and no test is longer for it


def _loss(text: str) -> float | None:
    if (found := _number(0, 1)(text)) == 1:
        raise ValueError("a loss ratio from 0 to below 1, such as 0.2")
    return found


def _percent(text: str) -> float | None:
    return None if text == "off" else (_number(0.1, 100, " percent, or off")(text) or 0.0) / 100


def _settings(text: str) -> Mapping[str, str]:
    rows = [row for each in text.split(";") if (row := each.strip())]
    if wrong := [row for row in rows if not re.match(r"\w[\w.-]*=", row)]:
        raise ValueError(f"KEY=VALUE at '{quoted(wrong[0])}', several joined by ';'")
    return {key.strip(): value.strip() for key, _, value in (row.partition("=") for row in rows)}


DENSITY, SWEEP, CHAINS = "density", "sweep", "chains"
TOPOLOGY = _declared("TOPOLOGY", str, "file of the testbed", "topologies/local.yaml")
RESUME = _declared("RESUME", str, "folder of an interrupted run to continue", "results/20260101-120000")
NIC_MODEL = _declared("NIC_MODEL", str, "network cards of virtual machines", "e1000")
NOISE_FLOOR = _declared("NOISE_FLOOR", _noise_s, "seconds for which idle data CPUs are observed before a run", "5")
QUALIFY = _declared("QUALIFY", str, "qualification of the generator: auto, off, or the folder of its results", "off")
SET = _declared("SET", _settings, "keys of specifications, of one study by its name", "outage.share=0.5;repetitions=3")
CELLS = _declared(
    "CELLS", str, "service instances x NFs of each", "1x1,2x1", DENSITY,
    default="{1,2,4,6,8,10}x{1,2,4,6,8,10}", tag=(r"(\d{1,2})R(\d{1,2})C", "{}x{}"),
)  # fmt: skip
NF_SIZES = _declared(
    "NF_SIZES", str, "data cores of an NF", "0.5c,2c", DENSITY,
    default="1c,0.5c", tag=(r"NF(0\.5|[1-9]\d{0,2})C(-SHARED)?", "{}c{}"),
)  # fmt: skip
VSWITCH = _declared(
    "VSWITCH", str, "data cores of the vSwitch", "1,2", DENSITY, default="1", tag=(r"([124])C", "{}")
)  # fmt: skip
FRAMES = _declared(
    "FRAMES", str, "frame sizes or captures", "64B,IMIX", DENSITY, default="64B", tag=(r"(\d+B|IMIX)", "{}")
)  # fmt: skip
FLOWS = _declared(
    "FLOWS", str, "flows of each instance and direction; of sweeps of each direction", "1,1000", DENSITY, SWEEP,
    tag=(r"(\d{1,7})FLOWS", "{}"),
)  # fmt: skip
IP_VERSION = _declared("IP_VERSION", str, "versions of IP", "4,6", DENSITY, tag=(r"IP([46])FWD", "{}"))
NF_KINDS = _declared("NF_KINDS", str, "kinds of NF along a chain", "KIND+KIND", DENSITY)
CACHE_WAYS = _declared("CACHE_WAYS", str, "ways of the last-level cache of each NF", "2", DENSITY)
SEARCH = _declared("SEARCH", str, "profile of the search of throughput", "quick,width=0.05", DENSITY, default="ladder")
PRIORS = _declared("PRIORS", str, "folder of earlier results that searches start from", "results/night", DENSITY)
PREDICT = _declared("PREDICT", _switch, "whether measured cells predict others", "off", DENSITY, default="on")
LOSSES = _declared("LOSSES", _number(0.1, 60, " seconds"), "seconds of trials that count each loss", "1", DENSITY)
BACK_TO_BACK = _declared(
    "BACK_TO_BACK", _whole(1, 1000), "repetitions of the search for the longest burst without a loss", "50", DENSITY
)  # fmt: skip
ENERGY = _declared("ENERGY", _number(1, 600, " seconds"), "seconds of trials that measure power", "10", DENSITY)
STACKS = _declared(
    "STACKS", _number(1, 600, " seconds"), "seconds in which call stacks of data CPUs are sampled", "10",
    DENSITY, CHAINS,
)  # fmt: skip
AT_RATE = _declared(
    "AT_RATE", _rate, "packets per second of each instance at which latency suites measure", "360000", DENSITY
)  # fmt: skip
FRAME = _declared("FRAME", str, "frame size", "512B", SWEEP, default="64B")
FIREWALL = _declared("FIREWALL", str, "kind of the firewalls", "KIND", SWEEP)
NAT = _declared("NAT", str, "kind of the address translators", "KIND", SWEEP)
ROUTER = _declared("ROUTER", str, "kind of the routers", "KIND", SWEEP)
GENERATOR = _declared("GENERATOR", str, "traffic generator, in the place of the testbed's", "NAME", SWEEP, CHAINS)
PROTOCOL = _declared("PROTOCOL", str, "protocol of the traffic", "UDP", SWEEP, default="auto")
DEPARTURES = _declared("DEPARTURES", str, "times between packets", "exponential", SWEEP, default="constant")
SWEEP_RATES = _declared(
    "SWEEP_RATES", str, "packets per second of each flow, one way: first-last/step", "10000-200000/10000", SWEEP,
    default="auto",
)  # fmt: skip
SWEEP_DURATION = _declared("SWEEP_DURATION", str, "seconds of each load", "30", SWEEP, default="2")
SWEEP_WIDTH = _declared(
    "SWEEP_WIDTH", _percent, "width in percent of the break-point's interval at which a sweep ends", "0.5", SWEEP,
    default="2",
)  # fmt: skip
STOP_LOSS = _declared("STOP_LOSS", _loss, "loss ratio of three loads in a row that ends a sweep", "0.5", SWEEP)
PROFILES = _declared("PROFILES", str, "folder of earlier results with profiles of parts", "results/night", SWEEP)
MORE = _declared("MORE", str, "yes for tests too that take long", "yes", "interference", "sizing")
