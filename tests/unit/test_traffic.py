"""Integration tests that may use this machine's testbed take turns without being listed."""

from pathlib import Path

from tests.integration.traffic import BESIDE, takes_turns

INTEGRATION = Path(__file__).parents[1] / "integration"


def test_what_needs_root_takes_turns_unless_it_is_known_not_to(tmp_path: Path) -> None:
    names = ("test_call_stacks_local.py", "test_resume.py", "test_node_doctor.py")
    assert [takes_turns(INTEGRATION / name) for name in names] == [True, False, False]
    (tmp_path / "test_new.py").write_text("pytestmark = [pytest.mark.root, pytest.mark.parallel]\n", encoding="utf-8")
    assert takes_turns(tmp_path / "test_new.py")


def test_no_exception_outlives_its_reason() -> None:
    for name in BESIDE:
        text = (INTEGRATION / name).read_text(encoding="utf-8")
        assert "mark.root" in text and "mark.parallel" in text, name
