"""Wrong options of `./csit local`: one sentence, before anything is opened."""

from pathlib import Path
from typing import NoReturn

import pytest

from csit_utils.cli import make_app
from csit_utils.commands.runs import local as module
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.testbed.topology import Topology


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--cold", "--priors", "nix"], "--cold starts no search from earlier results; leave out --priors nix"),
        (["--priors", "nix"], "nix: no such folder of earlier results"),
    ],
)
def test_earlier_results_that_cannot_be_used_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], sentence: str
) -> None:
    def opened(_: Topology) -> NoReturn:
        raise AssertionError("the machine was opened")

    monkeypatch.setattr(module, "_try_to_open", opened)
    with pytest.raises(ConfigError) as refused:
        make_app(["local"])(["local", "--output", str(tmp_path / "run"), *options], standalone_mode=False)
    assert str(refused.value) == sentence
    assert not list(tmp_path.iterdir())
