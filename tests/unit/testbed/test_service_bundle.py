"""What nodes of a lab get of a service: all that lies beside its specifications, and nothing else."""

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from resources.libraries.python.errors import ConfigError, CsitError
from resources.libraries.python.model.service.load import Specifications, load_specifications
from resources.libraries.python.testbed.services import bundle
from resources.libraries.python.testbed.services.bundle import BundledFile, ServiceBundle, as_on_node, bundled, write

WIRE = TypeAdapter(ServiceBundle)


def service(folder: Path, workload: str = "") -> Specifications:
    """A service in a folder, with its workload in a folder of its own where that is named."""
    load = folder / workload
    load.mkdir(parents=True, exist_ok=True)
    for path in (folder / "install.sh", folder / "remove.sh", load / "load.sh"):
        path.write_text("#!/bin/sh\n")
        path.chmod(0o775)
    (folder / "deployment.json").write_text(
        json.dumps({
            "vnf_name": "edges",
            "components": [{"name": "edge", "short": "ed", "flavors": ["small"]}],
            "flavors": {"small": {"vcpus": 1, "memory_mb": 64}},
            "install": "install.sh",
            "remove": "remove.sh",
            "mode": "exhaustive",
        })
    )  # fmt: skip
    (load / "workload.json").write_text(
        json.dumps({"range": {"min": 1, "max": 3}, "increase": 1, "generator": "load.sh", "duration_s": 1})
    )
    return load_specifications(folder / "deployment.json", load / "workload.json")


def carried(asked: Specifications) -> ServiceBundle:
    """As it comes out at the other end of a wire."""
    return WIRE.validate_python(json.loads(json.dumps(WIRE.dump_python(bundled(asked), mode="json"))))


def test_scripts_lie_on_the_node_as_they_lay_at_home(tmp_path: Path) -> None:
    home, there = tmp_path / "home", tmp_path / "there"
    asked = service(home)
    (home / "data" / ".hidden").mkdir(parents=True)
    (home / "data" / "subscribers.bin").write_bytes(bytes(range(256)))
    (home / "data" / "subscribers.bin").chmod(0o640)
    (home / "data" / "link").symlink_to("subscribers.bin")
    (home / "data" / ".hidden" / "key").write_text("secret")
    (home / ".env").write_text("secret")
    got = carried(asked)
    write(got, there)
    found = as_on_node(got, there)
    assert found.install == {"edge": there / "deployment" / "install.sh"}
    assert found.remove == there / "deployment" / "remove.sh"
    assert found.generator == there / "deployment" / "load.sh", "both files lie in one folder, which comes once"
    assert (found.deployment, found.workload) == (asked.deployment, asked.workload)
    names = {str(path.relative_to(there / "deployment")) for path in there.rglob("*") if path.is_file()}
    assert names == {
        "install.sh", "remove.sh", "load.sh", "deployment.json", "workload.json", "data/subscribers.bin", "data/link",
    }  # fmt: skip
    data = there / "deployment" / "data"
    assert (data / "subscribers.bin").read_bytes() == (data / "link").read_bytes() == bytes(range(256))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in there.rglob("*.*")}
    assert (modes["install.sh"], modes["subscribers.bin"]) == (0o755, 0o640), "only its owner may change a script"


def test_a_workload_of_another_folder_comes_with_that(tmp_path: Path) -> None:
    got = bundled(service(tmp_path, "calls"))
    assert got.generator == "workload/load.sh"
    assert {"workload/load.sh", "deployment/install.sh"} <= {file.path for file in got.files}


def test_a_script_of_another_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "service").mkdir()
    service(tmp_path / "service")
    outside = tmp_path / "install.sh"
    outside.write_text("#!/bin/sh\n")
    outside.chmod(0o755)
    path = tmp_path / "service" / "deployment.json"
    path.write_text(path.read_text().replace('"install.sh"', '"../install.sh"'))
    asked = load_specifications(path, tmp_path / "service" / "workload.json")
    with pytest.raises(ConfigError, match=rf"^{outside} is outside of {tmp_path}/service, which is what nodes"):
        bundled(asked)


@pytest.mark.parametrize(
    ("name", "target", "says"),
    [
        ("passwd", "/etc/passwd", "leads out of"),
        ("etc", "/etc", "is a link to a folder"),
        ("gone", "no-such-file", "cannot be brought to a node: No such file"),
    ],
)
def test_links_that_lead_elsewhere_are_refused(tmp_path: Path, name: str, target: str, says: str) -> None:
    asked = service(tmp_path)
    (tmp_path / name).symlink_to(target)
    with pytest.raises(ConfigError, match=rf"^{tmp_path}/{name} {says}"):
        bundled(asked)


def test_a_folder_of_more_than_scripts_need_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = service(tmp_path)
    monkeypatch.setattr(bundle, "MAX_BYTES", 1000)
    (tmp_path / "capture.pcap").write_bytes(bytes(1001))
    with pytest.raises(ConfigError, match=rf"^{tmp_path}: more than 1000 bytes; nodes of a lab get all of"):
        bundled(asked)


@pytest.mark.parametrize("path", ["../out", "a/../../out", "{tmp_path}/out", "deployment/../../out"])
def test_nothing_is_written_outside_of_the_folder(tmp_path: Path, path: str) -> None:
    file = BundledFile(path.format(tmp_path=tmp_path), 0o644, b"")
    got = replace(bundled(service(tmp_path / "home")), files=(file,))
    with pytest.raises(CsitError, match=rf"leads out of {tmp_path}/there$"):
        write(got, tmp_path / "there")
    assert not list(tmp_path.glob("**/out"))
