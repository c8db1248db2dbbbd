"""Writes a topology with another VPP build: with_vpp.py TOPOLOGY PREFIX TESTBED."""

import sys
from pathlib import Path

import yaml

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.load import load_topology
from resources.libraries.python.model.testbed.nodes import DutNode


def with_vpp(topology: Path, prefix: str, testbed: Path) -> None:
    """Write a copy of a topology in which each DUT takes VPP from another folder.

    Args:
        topology: The file as it is, in any format that is read.
        prefix: The folder on the DUTs that has `bin/vpp`.
        testbed: The file to write.

    Raises:
        ConfigError: The topology is wrong, or no DUT of it uses VPP.
    """
    read = load_topology(topology)
    if not any(_uses_vpp(dut) for dut in read.duts.values()):
        raise ConfigError(f"{topology}: no DUT uses VPP, so a build of it cannot be measured there")
    document = read.model_dump(mode="json", exclude_unset=True)
    for name in read.duts:
        document["nodes"][name].setdefault("vpp", {})["prefix"] = prefix
    testbed.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    load_topology(testbed)


def _uses_vpp(dut: DutNode) -> bool:
    return any("vpp" in str(kind) for kind in (dut.vswitch, *dut.containers, dut.vms))


if __name__ == "__main__":
    try:
        with_vpp(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
    except ConfigError as error:
        sys.exit(str(error))
