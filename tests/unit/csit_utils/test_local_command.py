"""Wrong options of `./csit local`: one sentence, before anything is opened."""

from pathlib import Path
from typing import NoReturn

import pytest

from csit_utils.cli import make_app
from csit_utils.commands.runs import local as module
from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.testbed.topology import Topology
from resources.libraries.python.paths import PROJECT


def test_without_root_this_machine_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 65534)
    topology = str(PROJECT / "topologies" / "local-vpp.yaml")
    with pytest.raises(ConfigError, match=r"^local needs root to make network namespaces; as another user: "):
        make_app(["local"])(["local", "--topology", topology, "--types", "nix"], standalone_mode=False)
    with pytest.raises(ConfigError, match="nix"):  # the simulated testbed needs none
        make_app(["local"])(
            ["local", "--topology", str(PROJECT / "topologies" / "sim.yaml"), "--types", "nix"], standalone_mode=False
        )


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
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(ConfigError) as refused:
        make_app(["local"])(["local", "--output", str(tmp_path / "run"), *options], standalone_mode=False)
    assert str(refused.value) == sentence
    assert not list(tmp_path.iterdir())
