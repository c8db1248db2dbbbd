"""A study on the reading side is one folder: pages, commands, explanations and templates are found in it."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from typer.testing import CliRunner

import csit_utils.studies as package
from csit_utils import cli
from csit_utils.cli import make_app
from csit_utils.dataset.rows import MEASURES
from csit_utils.report.pages import pages
from csit_utils.studies import folders, study_commands, template_folders
from csit_utils.studies.registry import explanations, measures, record_kinds, studies
from resources.libraries.python.recording.records import RECORDS
from resources.libraries.python.studies.sweep.model.record import SweepRecord

_STUDY = """
from csit_utils.dataset.measures import Explanation
from csit_utils.report.study import Page, Study

STUDY = Study(
    order=60,
    pages=(Page("noise", "Noise floor", lambda shown: {}),),
    explanations={"Noise": [Explanation("noise-floor", "Noise floor", "What", "Unit", "How", "Misread")]},
)
"""
_COMMAND = '''
import typer


def noise() -> None:
    """Print the noise floor."""
    typer.echo("42 ns")
'''


@pytest.fixture
def noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A study that is nothing but a folder."""
    folder = tmp_path / "noise"
    (folder / "commands").mkdir(parents=True)
    (folder / "templates" / "pages").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "study.py").write_text(_STUDY)
    (folder / "commands" / "__init__.py").touch()
    (folder / "commands" / "noise.py").write_text(_COMMAND)
    monkeypatch.setattr(package, "_HERE", tmp_path)
    monkeypatch.setattr(package, "__path__", [str(tmp_path)])
    caches = (studies, record_kinds, explanations, pages)
    for each in caches:
        each.cache_clear()
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if name.startswith("csit_utils.studies.noise"):
            del sys.modules[name]
    for each in caches:
        each.cache_clear()


def test_a_folder_is_a_study(noise: Path) -> None:
    assert [page.title for page in pages()][1] == "Noise floor"
    assert explanations()["noise-floor"].title == "Noise floor"
    assert template_folders() == (noise / "templates",)
    assert study_commands() == {"noise": "csit_utils.studies.noise.commands.noise"}


@pytest.mark.usefixtures("noise")
def test_a_command_of_a_study_needs_no_entry_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csit_utils.cli._MODULES", study_commands())
    monkeypatch.setattr("csit_utils.cli.COMMANDS", ("noise",))
    assert CliRunner().invoke(make_app(["noise"]), ["noise"]).stdout == "42 ns\n"


def test_every_kind_of_record_has_a_study() -> None:
    patterns = get_args(SweepRecord.model_fields["pattern"].annotation)
    assert {*record_kinds()} == {*RECORDS, *patterns} - {"density"}, "its tests have tables and pages of their own"


def test_studies_do_not_share_names() -> None:
    every = studies()
    assert len(every) == len(folders())
    assert len({study.order for study in every}) == len(every)
    assert len({page.name for page in pages()}) == len(pages())
    own = [{measure for kind in study.kinds for measure in kind.measures} for study in every]
    assert len({*measures(), *MEASURES}) == sum(map(len, own)) + len(MEASURES)
    assert not {name for names in cli._OF_NO_STUDY.values() for name in names} & {*study_commands()}, (
        "one hides the other"
    )
