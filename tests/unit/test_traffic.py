"""Integration tests that may use this machine's testbed take turns without being listed."""

from pathlib import Path

import pytest

from tests.integration.traffic import BESIDE, takes_turns

INTEGRATION = Path(__file__).parents[1] / "integration"


@pytest.mark.parametrize(
    ("name", "turns"),
    [
        ("test_call_stacks_local.py", True),
        ("test_lab_stateful.py", True),
        ("test_resume.py", False),
        ("test_node_doctor.py", False),
    ],
)
def test_what_needs_root_takes_turns_unless_it_is_known_not_to(name: str, turns: bool) -> None:
    assert takes_turns(INTEGRATION / name) == turns


def test_a_new_file_takes_turns(tmp_path: Path) -> None:
    (tmp_path / "test_new.py").write_text("pytestmark = [pytest.mark.root, pytest.mark.parallel]\n", encoding="utf-8")
    assert takes_turns(tmp_path / "test_new.py")


def test_no_exception_outlives_its_reason() -> None:
    for name in BESIDE:
        text = (INTEGRATION / name).read_text(encoding="utf-8")
        assert "mark.root" in text and "mark.parallel" in text, name
