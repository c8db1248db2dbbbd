"""Regular expressions of this project, searched in long texts of what they look for: the time grows with the length."""

import ast
import importlib
import re
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.conftest import PROJECT
from tests.fuzz.oracle import ATTEMPTS, bounded

_LENGTH = 40_000
"""A search in linear time takes some milliseconds, one whose time is the square of the length several seconds."""
_BOUNDED = {"resources.libraries.python.drivers.vpp.show_output": 500}
"""Longest text by module, where it is cut before."""
_METHODS = {"search", "match", "fullmatch", "findall", "finditer"}


def patterns() -> Iterator[tuple[str, str, str]]:
    """Module, name and method of each pattern at the top of a module."""
    for base in ("resources/libraries/python", "csit_utils"):
        for path in sorted((PROJECT / base).rglob("*.py")):
            if "re.compile" in (text := path.read_text(encoding="utf-8")):
                module = ".".join(path.relative_to(PROJECT).with_suffix("").parts)
                yield from ((module, *call) for call in _calls(ast.parse(text)))


def _calls(tree: ast.Module) -> list[tuple[str, str]]:
    """Methods that are called of names which are assigned at the top."""
    targets = [target for line in tree.body if isinstance(line, ast.Assign) for target in line.targets]
    names = {each.id for each in targets if isinstance(each, ast.Name)}
    found = {
        (node.value.id, "search" if node.attr in ("sub", "split") else node.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in names
    }
    return sorted(each for each in found if each[1] in _METHODS)


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
    if not isinstance(pattern, re.Pattern):
        return
    end = b"\x01!" if isinstance(pattern.pattern, bytes) else "\x01!"
    call = getattr(pattern, method)
    for text in _texts(pattern, _BOUNDED.get(module, _LENGTH)):
        bounded("patterns", partial(_searched, call, text + end), ATTEMPTS)


def _searched(call: Callable[[Any], object], text: Any) -> None:
    found = call(text)
    if isinstance(found, Iterator):
        deque(found, 0)
