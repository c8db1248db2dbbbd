"""Mutated bytes for every function that reads what others wrote, for the link to a node, and for patterns."""

import importlib
import json
import random
import re
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.libraries.python.dialogue import LONGEST_ERROR
from resources.libraries.python.errors import CsitError
from resources.libraries.python.recording.step_journal import StepJournal
from resources.libraries.python.testbed.agent import calls
from resources.libraries.python.testbed.agent.calls import BY_NAME, Call
from resources.libraries.python.testbed.remote.link import AgentLink
from tests.fuzz.conftest import PROJECT
from tests.fuzz.damage import damaged, mutated
from tests.fuzz.oracle import ATTEMPTS, bounded, refused
from tests.fuzz.targets import STEPS, TARGETS, steps_of, tried
from tests.unit.testbed.scripted_channel import ScriptedChannel

_SHORT = 4_000
"""Inputs of the short pass, over all targets."""
_TIMES = 1_000
"""Inputs over all targets for each one of `--inputs`."""


@pytest.mark.parametrize("name", TARGETS)
def test_mutated_examples(name: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    target, asked = TARGETS[name], pytestconfig.getoption("--inputs")
    number = max(10, round(target.share * (asked * _TIMES if asked else _SHORT)))
    seed = random.SystemRandom().getrandbits(64) if asked else crc32(name.encode())
    chance = random.Random(seed)
    for _ in range(number):
        content = mutated(chance, chance.choice(target.examples), target.pieces)
        try:
            tried(name, content, tmp_path)
        except BaseException:
            kept = Path(tempfile.gettempdir(), f"fuzz-{crc32(content):08x}")  # pytest removes its own folders
            kept.write_bytes(content)
            print(f"{name}: input in {kept}")
            raise


@pytest.mark.parametrize("name", TARGETS)
def test_examples_are_read(name: str, tmp_path: Path) -> None:
    """Inputs near one that is refused at once would reach little."""
    for example in TARGETS[name].examples:
        TARGETS[name].call(example, tmp_path)


@pytest.mark.parametrize("kind", STEPS)
def test_journals_of_steps_are_read_whole(kind: type[StepJournal[Any]], tmp_path: Path) -> None:
    (tmp_path / kind.FILE).write_bytes(steps_of(kind, *STEPS[kind]))
    with kind(tmp_path / kind.FILE, "0") as steps:
        assert len(steps.rows) == len(STEPS[kind]) and not steps.remarks


TOKENS = (*'{}[]:,"\n', "[" * 1500, "null", "9" * 5000, "\\ud800", "NaN", '"id":[1]', '"error":')


def accepts_nothing(call: Call[Any, Any]) -> bool:
    try:
        call.asks.validate_python(())
    except ValueError:
        return False
    return True


ASKED: list[tuple[Call[Any, Any], object]] = [
    (calls.LEFTOVERS, None),
    (calls.FINGERPRINT, None),
    *((each.call, ()) for each in BY_NAME.values() if accepts_nothing(each.call)),
]
ANSWERS = "\n".join(
    json.dumps(record)
    for record in (
        {"beat": True},
        {"id": 1, "value": ["a veth pair is left"]},
        {"id": 1, "value": {"csit-p1": {"rx_packets": 1, "tx_packets": 2}}},
        {"id": 1, "error": {"class": "NotReady", "what": "carrier", "after_s": 3.0, "last_seen": "down"}},
        {"id": 1, "error": {"class": "CommandFailed", "argv": ["ip", "link"], "status": 2, "stderr": "no"}},
    )
)


@given(data=st.data())
def test_lines_of_agents(data: st.DataObject) -> None:
    stream = data.draw(damaged(ANSWERS, TOKENS)).encode(errors="surrogatepass") + b"\n"
    cut, asked = data.draw(st.integers(1, 4000)), data.draw(st.sampled_from(ASKED))
    channel = ScriptedChannel([*(stream[at : at + cut] for at in range(0, len(stream), cut)), b""])

    def ask() -> None:
        link = AgentLink("DUT1", channel, silence_s=30.0)
        try:
            try:
                link.call(*asked)
            except (CsitError, OSError, RuntimeError) as error:  # those of a driver, as they are
                assert len(str(error)) < 2 * LONGEST_ERROR
        finally:
            link.close()

    refused("link", ask)


_LENGTH = 40_000
"""A search in linear time takes some milliseconds, one whose time is the square of the length several seconds."""
_BOUNDED = {"resources.libraries.python.drivers.vpp.show_output": 500}
"""Longest text by module, where it is cut before."""
_METHODS = {"search", "match", "fullmatch", "findall", "finditer"}


def patterns() -> Iterator[tuple[str, str, str]]:
    """Module, name and method of each pattern at the top of a module, as it is called there."""
    folders = (PROJECT / "resources/libraries/python", PROJECT / "csit_utils")
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        text, module = path.read_text(encoding="utf-8"), ".".join(path.relative_to(PROJECT).with_suffix("").parts)
        for name in re.findall(r"^(\w+)(?:: .*)? = re\.compile", text, re.MULTILINE):
            called = set(re.findall(rf"\b{name}\.(\w+)", text))
            called |= {"search"} if called & {"sub", "split"} else set()
            yield from ((module, name, method) for method in sorted(called & _METHODS))


def _texts(pattern: re.Pattern[Any], length: int) -> Iterator[Any]:
    """Beginnings of texts that fit, each continued by one of its pieces again and again."""
    fitting: list[Any] = []

    @settings(max_examples=3)
    @given(st.from_regex(pattern))
    def collect(text: Any) -> None:
        fitting.append(text[:40])

    collect()
    binary = isinstance(pattern.pattern, bytes)
    for piece in (b" ", b"a", b"1", b"a1") if binary else (" ", "a", "1", "a1"):
        yield piece * length
    for text in fitting:
        for at in range(0, len(text), max(1, len(text) // 4)):
            for size in (1, len(text)):
                piece = text[at : at + size]
                yield (text[:at] + piece * length)[:length]


@pytest.mark.parametrize(("module", "name", "method"), tuple(patterns()))
def test_patterns_take_time_in_proportion_to_the_text(module: str, name: str, method: str) -> None:
    pattern = getattr(importlib.import_module(module), name)
    end = b"\x01!" if isinstance(pattern.pattern, bytes) else "\x01!"
    call = getattr(pattern, method)
    for text in _texts(pattern, _BOUNDED.get(module, _LENGTH)):
        bounded("patterns", partial(_searched, call, text + end), ATTEMPTS)


def _searched(call: Callable[[Any], object], text: Any) -> None:
    found = call(text)
    if isinstance(found, Iterator):
        deque(found, 0)
