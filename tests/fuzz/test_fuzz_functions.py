"""Mutated bytes for every function that reads what others wrote."""

import random
import tempfile
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from resources.libraries.python.recording.step_journal import StepJournal
from tests.fuzz.damage import mutated
from tests.fuzz.targets import STEPS, TARGETS, steps_of, tried

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
