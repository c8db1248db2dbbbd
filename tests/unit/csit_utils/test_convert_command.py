"""`convert` writes a file that the other commands read, and says what it did without the secrets."""

from pathlib import Path

import pytest

from csit_utils.cli import make_app
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import load_topology
from tests.unit.planning.labs import TWO_NODES, written


def convert(*arguments: str) -> None:
    make_app(["convert"])(["convert", *arguments], standalone_mode=False)


def test_the_file_is_written_once_and_can_be_loaded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, output = written(tmp_path, TWO_NODES), tmp_path / "new" / "icx.yaml"
    convert(str(source), "-o", str(output))
    said = capsys.readouterr()
    assert said.out == ""
    assert "nodes.TG.password: not copied" in said.err
    assert "runs use the 2 TG ports cabled to Intel-E810CQ" in said.err
    assert "in the clear" not in said.err + output.read_text(encoding="utf-8")
    assert load_topology(output).metadata.name == "some_2n_testbed1"
    with pytest.raises(ConfigError, match=r"icx\.yaml: exists; --force overwrites it"):
        convert(str(source), "-o", str(output))
    convert(str(source), "-o", str(output), "--force")


def test_standard_output_is_the_file_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    convert(str(written(tmp_path, TWO_NODES)))
    piped = written(tmp_path, capsys.readouterr().out, "piped.yaml")
    assert load_topology(piped).tg.generator.driver == "trex"
