"""What NFs run in, as a topology says it."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.testbed.nodes import Container

TOPOLOGIES = Path(__file__).parents[3] / "topologies"


def read(folder: Path, **dut: Any) -> Container:
    """The setting of the testbed `local-vpp` with other words for its DUT."""
    data = yaml.safe_load((TOPOLOGIES / "local-vpp.yaml").read_text(encoding="utf-8"))
    node = data["nodes"]["DUT1"]
    node.pop("container")
    node.update(dut)
    path = folder / "topology.yaml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    return load_topology(path).dut.container


@pytest.mark.parametrize("image", ["--privileged", "a b", "", "x" * 256])
def test_an_image_is_a_reference_and_no_option(tmp_path: Path, image: str) -> None:
    with pytest.raises(ConfigError, match=r"nodes\.DUT1\.container\.image"):
        read(tmp_path, container={"engine": "podman", "image": image})


def test_two_duts_of_a_lab_run_the_same_service_in_the_same_engine(tmp_path: Path) -> None:
    text = (TOPOLOGIES / "available" / "lab-3n-vpp.yaml").read_text(encoding="utf-8")
    path = tmp_path / "lab.yaml"
    path.write_text(text.replace("container: {engine: auto}", "container: {engine: docker}", 1), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"nodes\.DUT2\.container: differs from the first DUT's"):
        load_topology(path)
