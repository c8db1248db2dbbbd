"""Boundary of the Robot libraries: errors in one sentence, nothing secret in what Robot writes."""

import errno
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from robot.api import Failure, SkipExecution, deco

from docs.keywords import library_names
from resources.libraries.python import redaction
from resources.libraries.python.defects import DEBUG_LOG
from resources.libraries.python.dialogue import RemoteDefect
from resources.libraries.python.errors import CsitError
from resources.libraries.python.studies.shared import boundary
from resources.libraries.python.studies.shared.boundary import Defect, Redaction, SystemCallFailed, keyword
from resources.libraries.python.studies.shared.library import StudyKeywords
from resources.libraries.python.studies.shared.run_state import EndOfRun
from resources.libraries.python.testbed.deployment.health import is_breakage


@pytest.mark.parametrize("name", library_names())
def test_every_keyword_has_the_boundary_and_every_library_listens_for_secrets(name: str) -> None:
    kind: Any = getattr(import_module(name), name.rpartition(".")[2])
    keywords = [found for found in (getattr(kind, each) for each in dir(kind)) if hasattr(found, "robot_name")]
    assert keywords
    assert [each for each in keywords if not getattr(each, "at_boundary", False)] == []
    listeners = kind.ROBOT_LIBRARY_LISTENER
    found = listeners if isinstance(listeners, list) else [listeners]
    assert any(isinstance(each, Redaction) for each in found)


class WithRobotsDecorator(StudyKeywords[Any]):
    """A library of a study that was written elsewhere."""

    @deco.keyword(name="Another Name", tags=["slow"])
    def some_keyword(self, count: int) -> None:
        """Fail."""
        raise KeyError(count)


def test_keywords_of_studies_are_guarded_with_either_decorator(folder: Path) -> None:
    method = WithRobotsDecorator.some_keyword
    assert (method.robot_name, method.robot_tags, method.at_boundary) == ("Another Name", ["slow"], True)  # type: ignore[attr-defined]
    with pytest.raises(Defect, match=str(folder / DEBUG_LOG)):
        WithRobotsDecorator().some_keyword(1)


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(boundary, "variable", {"OUTPUT DIR": str(tmp_path)}.get)
    monkeypatch.setattr(redaction, "_values", {"open sesame": None})
    redaction._pattern.cache_clear()
    return tmp_path


def failing(error: Exception) -> Any:
    @keyword
    def some_keyword() -> None:
        raise error

    return some_keyword


def test_a_defect_is_one_sentence_that_names_the_log(folder: Path) -> None:
    with pytest.raises(Defect) as found:
        failing(KeyError("open sesame"))()
    log = folder / DEBUG_LOG
    assert str(found.value) == f"internal error: KeyError: '***'; its traceback is in {log}"
    text = log.read_text(encoding="utf-8")
    assert "Traceback" in text and "some_keyword" in text and "sesame" not in text
    assert log.stat().st_mode & 0o777 == 0o600
    assert not is_breakage(found.value)


@pytest.mark.parametrize(("kind", "begin"), [(RemoteDefect, "internal error: "), (CsitError, "")])
def test_a_traceback_of_a_node_is_in_the_log(folder: Path, kind: type[Exception], begin: str) -> None:
    error = kind(text := "DUT1: KeyError: 'vswitch'")
    error.add_note('DUT1: Traceback\n  File "agent.py", line 1')
    with pytest.raises((Defect, CsitError)) as found:
        failing(error)()
    assert str(found.value) == f"{begin}{text}; its traceback is in {folder / DEBUG_LOG}"
    assert 'File "agent.py", line 1' in (folder / DEBUG_LOG).read_text(encoding="utf-8")


def test_a_log_that_cannot_be_written_is_elsewhere(folder: Path) -> None:
    (folder / DEBUG_LOG).symlink_to("/nowhere/log")
    with pytest.raises(Defect) as found:
        failing(KeyError("x"))()
    log = Path(str(found.value).rpartition(" ")[2])
    assert "Traceback" in log.read_text(encoding="utf-8")
    log.unlink()


@pytest.mark.parametrize("error", [each("open sesame") for each in (CsitError, Failure, SkipExecution, EndOfRun)])
def test_expected_errors_keep_their_class_and_lose_their_secrets(folder: Path, error: Exception) -> None:
    with pytest.raises(type(error)) as found:
        failing(error)()
    assert str(found.value) == "***"
    assert not (folder / DEBUG_LOG).exists()


@pytest.mark.usefixtures("folder")
def test_errors_of_the_system_are_one_sentence() -> None:
    with pytest.raises(SystemCallFailed) as found:
        failing(OSError(errno.ENOSPC, "No space left on device", "/open sesame/x"))()
    assert str(found.value) == "/***/x: No space left on device"
    assert is_breakage(found.value)
