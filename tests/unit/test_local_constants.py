"""Examples of property tests are the same in every run, whatever a process has imported before."""

import importlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def examples() -> list[int]:
    drawn: list[int] = []

    @given(st.integers())
    def collect(number: int) -> None:
        drawn.append(number)

    collect()
    return drawn


@pytest.mark.skipif(not settings().derandomize, reason="this profile looks for new examples")
def test_examples_do_not_depend_on_modules_that_are_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = examples()
    (tmp_path / "module_with_constants.py").write_text(f"NUMBERS = {list(range(1000, 1500))}\n", encoding="ascii")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("module_with_constants")
    assert examples() == before
