"""Virtual machines with VPP in them, as far as it needs none: image, first program, vCPUs, interfaces, commands."""

import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from resources.libraries.python.drivers.functions.vm.archive import cpio, file
from resources.libraries.python.drivers.functions.vm.extended_image import carried, parse
from resources.libraries.python.drivers.functions.vm.image import Description, Image
from resources.libraries.python.drivers.functions.vm.qemu import GuestNic, Hardware, arguments
from resources.libraries.python.drivers.functions.vm_vpp.guest_software import (
    FOLDER,
    VppInside,
    initramfs,
    interfaces_inside,
    missing,
    placement,
    render_init,
    vcpu_cpus,
)
from resources.libraries.python.drivers.vpp.configuration import making, routing
from resources.libraries.python.drivers.vpp.registration import Vpp
from resources.libraries.python.errors import Unsupported
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.function import Limits
from resources.libraries.python.model.request.kinds import NfKind
from resources.libraries.python.model.testbed.nodes import DutNode
from tests.builders import cpus, plan_of, shipped

LOCAL_VPP = shipped("local-vpp")
NODE: DutNode = LOCAL_VPP.dut.model_copy(update={"vms": NfKind("qemu_vpp")})
SHOWN = """\tlinux-vdso.so.1 (0x00007ffe5b7f2000)
\tlibvnet.so.26.10 => /opt/vpp/lib/x86_64-linux-gnu/libvnet.so.26.10 (0x00007f0e60000000)
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f0e5f000000)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f0e61000000)
"""


def vpp_guests_plan(cores: int = 16) -> Plan:
    topology = LOCAL_VPP.model_copy(update={"nodes": {**LOCAL_VPP.nodes, "DUT1": NODE}})
    return plan_of(topology, "VSC", 1, 1, cpus(cores))


def test_a_guest_has_a_vcpu_for_each_thread_on_the_cpu_that_is_planned_for_it() -> None:
    plan = vpp_guests_plan()
    vcpus = vcpu_cpus(plan, "nf-1-1")
    assert len(vcpus) == len(set(vcpus)) == 2
    assert vcpus[1:] == plan.cores.cpus("nf-1-1")
    found = placement(plan, "nf-1-1")
    assert (found.main, found.workers, found.worker_of(0)) == (0, (1,), 0)
    alone = vpp_guests_plan(cores=1)
    assert len(vcpu_cpus(alone, "nf-1-1")) == 1, "one thread does all"
    assert (placement(alone, "nf-1-1").workers, placement(alone, "nf-1-1").worker_of(0)) == ((), None)


def test_its_vpp_takes_the_network_cards_where_qemu_puts_them() -> None:
    function = vpp_guests_plan().functions[0]
    left, right = interfaces_inside(vpp_guests_plan(), function)
    assert making([left, right], 1518) == (
        "create interface virtio 0000:00:11.0 bind",
        "set interface name virtio-0/0/11/0 csn1x1i1",
        "create interface virtio 0000:00:12.0 bind",
        "set interface name virtio-0/0/12/0 csn1x1i2",
    )
    nics = tuple(GuestNic(side.mac, 7, 1500) for side in (function.left, function.right))
    argv = arguments("nf", Hardware("tcg", 800, 2, nics), (Path("k"), Path("i")), "")
    devices = [word for word in argv if word.startswith("virtio-net-pci")]
    for each, device in zip((left, right), devices, strict=True):
        assert each.pci_address and f"addr=0x{each.pci_address[8:10]},mac={each.mac}," in device
    assert routing(function)[0] == f"set interface ip address {left.name} {function.left.address}"


def test_its_configuration_is_a_file_for_a_vpp_with_the_guest_to_itself(tmp_path: Path) -> None:
    plan = vpp_guests_plan()
    inside = VppInside(plan, NODE)
    words = inside.arguments(plan.functions[0], tmp_path)
    assert f"name=opt/csit/startup.conf,file={tmp_path}/nf-1-1.startup.conf" in words
    assert f"socket,id=cli,path={tmp_path}/nf-1-1.cli,server=on,wait=off" in words
    text = (tmp_path / "nf-1-1.startup.conf").read_text(encoding="utf-8")
    for line in (
        "main-core 0", "corelist-workers 1", "cli-listen 127.0.0.1:5002", "main-heap-page-size 2m", "page-size 2m",
        f"runtime-dir {FOLDER}",
    ):  # fmt: skip
        assert f"  {line}\n" in text
    assert "_plugin.so" not in text, "its driver of network cards is no plugin"
    assert "hugepages=284" in inside.command_line(plan.functions[0], 1500).split()
    assert inside.memory_mb("nf-1-1") == 128 + 128 + 568


def test_the_first_program_is_sound_and_looks_for_what_qemu_was_given() -> None:
    script = render_init(["virtio", "uio_pci_generic"], Path("/opt/vpp/bin/vpp"), parse(SHOWN))
    assert subprocess.run(["sh", "-n"], input=script, text=True, check=False).returncode == 0
    assert script.index("insmod /modules/virtio.ko") < script.index("insmod /modules/uio_pci_generic.ko")
    assert "LD_LIBRARY_PATH=/opt/vpp/lib/x86_64-linux-gnu:/lib/x86_64-linux-gnu:/lib64\n" in script
    assert "/opt/vpp/bin/vpp -c /run/vpp/startup.conf &" in script
    assert '":138A 00000000:0000 0A"' in script, "5002, as the kernel shows it"
    assert "by_name/opt/csit/startup.conf/raw" in script


def test_libraries_are_read_from_what_the_loader_says() -> None:
    assert [path.name for path in parse(SHOWN)] == ["libvnet.so.26.10", "libc.so.6", "ld-linux-x86-64.so.2"]
    with pytest.raises(Unsupported, match=r"programs of a guest need libraries that are not here: libnl-3\.so\.200"):
        parse(f"{SHOWN}\tlibnl-3.so.200 => not found\n")


def test_files_are_carried_with_their_folders(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "a.so").write_bytes(b"a")
    rows = carried([tmp_path / "lib" / "a.so"])
    inside = str(tmp_path.relative_to("/"))
    assert [row.path for row in rows][-3:] == [inside, f"{inside}/lib", f"{inside}/lib/a.so"]
    assert rows[0].path == inside.split("/", 1)[0], "a folder comes before what is in it"


def base_image(place: Path) -> Image:
    """An image that is complete, and boots nothing."""
    place.mkdir()
    (place / "initramfs.cpio").write_bytes(cpio([file("init", b"first", executable=True)]))
    (place / "vmlinuz").touch()
    description = Description(kernel_version="6.1", packages={}, modules=(), user_space_modules=("uio",), digests={})
    (place / "image.json").write_text(description.model_dump_json(), encoding="utf-8")
    return Image(place)


def installed_vpp(prefix: Path) -> Path:
    """Install another program as VPP; return its path."""
    (prefix / "bin").mkdir(parents=True)
    program = prefix / "bin" / "vpp"
    program.write_bytes(Path("/bin/true").resolve().read_bytes())
    program.chmod(0o755)
    return program


def test_a_vpp_too_large_for_its_guest_is_refused_before_it_boots(tmp_path: Path) -> None:
    prefix = tmp_path / "vpp"
    installed_vpp(prefix)
    base, plan = base_image(tmp_path / "base"), vpp_guests_plan()
    node = DutNode.model_validate({**NODE.model_dump(), "vpp": {"prefix": str(prefix)}})
    assert VppInside(plan, node).initramfs("nf-1-1", base, tmp_path / "cache").exists()
    small = plan.functions[0].model_copy(update={"limits": Limits(memory_mib=568 + 50)})
    inside = VppInside(plan.model_copy(update={"functions": (small,)}), node)
    with pytest.raises(
        Unsupported, match=rf"^nf-1-1: a guest with the VPP of {prefix} needs (\d+) MB .* has 50 MB: .* vm.memory_mb"
    ):
        inside.initramfs("nf-1-1", base, tmp_path / "cache")


def test_a_guests_archive_is_made_once_for_each_vpp(tmp_path: Path) -> None:
    prefix, cache = tmp_path / "vpp", tmp_path / "cache"
    program = installed_vpp(prefix)
    base = base_image(tmp_path / "base")
    first = initramfs(base, prefix, cache)
    content = first.read_bytes()
    assert content.startswith(base.initramfs.read_bytes()), "the image of all guests, and then what is on top"
    names = re.findall(rb"(?:bin/vpp|lib/\S*/libc\.so\.6|init)(?=\0)", content)
    assert names[0] == names[-1] == b"init"
    assert {name.rpartition(b"/")[2] for name in names} == {b"init", b"vpp", b"libc.so.6"}
    made = first.stat().st_mtime_ns
    assert initramfs(base, prefix, cache).stat().st_mtime_ns == made
    program.write_bytes(program.read_bytes() + b"\0")
    assert initramfs(base, prefix, cache) != first
    assert not first.exists(), "the last one only is kept"


def test_missing_parts_are_reported(tmp_path: Path) -> None:
    node = cast(DutNode, SimpleNamespace(settings=lambda _: Vpp(prefix=str(tmp_path))))
    assert any("there is no program" in str(problem) for problem in missing(node, NfKind("qemu_vpp")))
