"""Guests with an application or VPP in them, as far as it needs none: what they are given, told and asked."""

import json
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from resources.libraries.python.drivers.functions.vm import application_guests as guests
from resources.libraries.python.drivers.functions.vm.archive import cpio, file
from resources.libraries.python.drivers.functions.vm.guest_software import GuestSoftware
from resources.libraries.python.drivers.functions.vm.image import Description, Image, carried, parse
from resources.libraries.python.drivers.functions.vm.qemu import GuestNic, Hardware, arguments
from resources.libraries.python.drivers.functions.vm_vpp import guest_software as vpp_guest
from resources.libraries.python.drivers.functions.vm_vpp.guest_software import render_init as vpp_init
from resources.libraries.python.drivers.vpp import Vpp
from resources.libraries.python.drivers.vpp.configuration import making, routing
from resources.libraries.python.errors import CsitError, NotReady, PlanError, Unsupported
from resources.libraries.python.model.driver import Medium
from resources.libraries.python.model.measurements.counters import InterfaceCounters, ProcessedPackets
from resources.libraries.python.model.plan import Plan
from resources.libraries.python.model.request.cell import Tap
from resources.libraries.python.model.request.kinds import Limits, NfKind
from resources.libraries.python.model.testbed.memory import MemoryNeed
from resources.libraries.python.model.testbed.nodes import DutNode
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.planning.memory import need
from resources.libraries.python.planning.plan import drivers_of, make_plan
from tests.builders import cell_of, cpus, plan_of, shipped
from tests.unit.drivers.functions.guest_parts import answering

LOCAL = shipped("local")
HOST = cpus(16)


def guests_plan(*kinds: str, service_type: str = "VSC") -> Plan:
    return plan_of(LOCAL, service_type, 1, len(kinds), HOST, nf_kinds=tuple(map(NfKind, kinds)))


def few_counters(received: int = 0) -> Callable[[str], Mapping[str, InterfaceCounters]]:
    return lambda name: {f"{name} left": InterfaceCounters(received, 0, 0, 0)}


@contextmanager
def guest(folder: Path, kind: str, *told: str, received: int = 0) -> Iterator[tuple[guests.Applications, list[bytes]]]:
    """A guest whose application gives these answers, the last of them with another status; and the questions."""
    plan = guests_plan(kind)
    made = guests.Applications(plan.functions, plan, LOCAL.dut, few_counters(received))
    made.arguments(plan.functions[0], folder)
    answers = [f"{text}\r\n{guests.END} {int('ended' in text)}\r\n".encode() for text in told]
    with answering(folder / "nf-1-1.questions", *answers) as asked:
        yield made, asked
        made.stop()


def test_a_nat_in_a_guest_has_addresses_to_translate_to_and_guests_behind_it_the_way_back_to_them() -> None:
    plan = guests_plan("qemu_nat", "qemu")
    nat, behind = plan.functions
    (container,) = guests_plan("linux_nat", service_type="CSC").functions
    assert nat.translates_to == container.translates_to is not None
    assert behind.translates_to is None
    words = GuestSoftware(plan, 128).command_line(behind, 1500)
    assert f",{behind.left.route.prefix}+{nat.translates_to},{behind.left.route.address}," in words
    assert f",{behind.right.route.prefix},{behind.right.route.address}," in words


def test_what_cannot_run_in_a_guest_is_refused_with_what_can() -> None:
    with pytest.raises(PlanError, match="no NFs of kind openvpn for a VSC; it has qemu, qemu_tcpdump, "):
        guests_plan("openvpn")


@pytest.mark.parametrize("kind", LOCAL.dut.guests)
def test_every_kind_shares_memory_with_vpp_and_takes_that_of_a_guest(kind: NfKind) -> None:
    local_vpp = shipped("local-vpp")
    dut = local_vpp.dut.model_copy(update={"vms": NfKind("qemu")})
    topology = local_vpp.model_copy(update={"nodes": {**local_vpp.nodes, "DUT1": dut}})
    plan = plan_of(topology, "VSC", 1, 1, HOST, nf_kinds=(kind,))
    assert {link.medium for link in plan.links if link.b.owner == "nf-1-1"} == {Medium.VHOST_USER}
    more_mb = 192 + 8 if kind == "qemu_suricata" else 0
    of_guest = need(LOCAL, cell_of("VSC", nf_kinds=(NfKind("qemu"),)))
    assert need(LOCAL, cell_of("VSC", nf_kinds=(kind,))) == of_guest + MemoryNeed(more_mb)


def test_limits_that_leave_suricata_too_little_memory_are_refused_with_the_numbers() -> None:
    def planned(memory_mib: int) -> Plan:
        limits = (Limits(memory_mib=64), Limits(memory_mib=memory_mib))
        kinds = (NfKind("qemu"), NfKind("qemu_suricata"))
        return plan_of(LOCAL, "VSC", 1, 2, HOST, nf_kinds=kinds, limits=limits)

    with pytest.raises(PlanError, match=r"qemu_suricata \(node 2\) is limited to 199 MiB .* its guest needs 200"):
        planned(199)
    assert planned(200).functions[1].limits.memory_mib == 200


def test_a_passive_guest_has_one_port_without_an_address_at_which_its_program_looks(tmp_path: Path) -> None:
    tap = Tap(position=1, kind=NfKind("qemu_suricata"))
    asked = cell_of("CSC", nf_kinds=(NfKind("linux_nat"),), taps=(tap,))
    plan = make_plan(LOCAL, asked, HOST)
    (passive,) = plan.taps
    assert plan.suite_id.endswith("-lnxnat-tap1vmsuricata")
    assert drivers_of(LOCAL, asked, {"containers": "x", "vms": "qemu"}) == {
        "containers": "linux_nat",
        "vms": "qemu_suricata",
    }
    without = asked.model_copy(update={"taps": ()})
    alone = cell_of("VSC", nf_kinds=(NfKind("qemu_suricata"),))
    assert need(LOCAL, asked) == need(LOCAL, without) + need(LOCAL, alone) + MemoryNeed(-2)
    made = guests.Applications([passive], plan, LOCAL.dut, few_counters())
    ports = [word for word in made.command_line(passive, 1500).split() if word.startswith("csit.port=")]
    assert ports == [f"csit.port={passive.interface},{passive.mac},-,-,-,-,1500,0"]
    made.arguments(passive, tmp_path)
    assert f"--af-packet={passive.interface}" in (tmp_path / "tap-1-1.program").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match=r"qemu_firewall cannot be passive: .*; .*qemu_ngrep"):
        Tap(position=1, kind=NfKind("qemu_firewall"))


def test_the_first_program_is_sound_and_no_packet_ever_passes_without_rules() -> None:
    files = {"nft": Path("/usr/sbin/nft"), "perl": Path("/usr/bin/perl")}
    script = guests.render_init(["nf_tables", "nft_ct"], files, [Path("/lib/a.so"), Path("/lib64/ld.so")])
    assert subprocess.run(["sh", "-n"], input=script, text=True, check=False).returncode == 0
    order = [
        "insmod /modules/nf_tables.ko", "LD_LIBRARY_PATH=/lib:/lib64\n", "/usr/sbin/nft -f /tmp/rules",
        "for word in $(cat /proc/cmdline)", 'until sh /tmp/up "$program"', "CSIT-GUEST-READY",
    ]  # fmt: skip
    places = [script.index(word) for word in order]
    assert places == sorted(places)


@pytest.mark.skipif(shutil.which("perl") is None, reason="no perl here")
def test_the_reader_of_packet_counts_is_valid_and_reports_that_a_program_exited() -> None:
    script = PROJECT / "resources" / "templates" / "guest-packet-counts.pl"
    done = subprocess.run(["perl", str(script), "999999999"], capture_output=True, text=True, check=False)
    assert (done.returncode != 0, done.stderr) == (True, "the program has ended\n")


def test_packets_of_a_monitor_are_added_up_and_its_exit_reported(tmp_path: Path) -> None:
    told = ("1000 10", "4000 20", "0 0", "the program has ended")
    with guest(tmp_path, "qemu_tcpdump", *told, received=5000) as (made, asked):
        assert made.processed()["nf-1-1"] == ProcessedPackets(990, 10)
        assert made.processed()["nf-1-1"] == ProcessedPackets(4970, 30)
        assert made.problems("nf-1-1") == ()
        assert made.problems("nf-1-1") == ("the guest of nf-1-1: the program has ended",)
    assert asked == [b"packets\n"] * 4


def test_what_suricata_took_out_of_its_socket_is_added_and_a_refusal_is_one_sentence(tmp_path: Path) -> None:
    good = '{"return":"OK"}\n{"message":{"pkts":500,"drop":20},"return":"OK"}'
    bad = '{"return":"OK"}\n{"message":"no such interface","return":"NOK"}'
    with guest(tmp_path, "qemu_suricata", "70 30", good, "7 3", bad) as (made, asked):
        assert made.processed()["nf-1-1"] == ProcessedPackets(40 + 480, 30 + 20)
        assert "no such interface" in made.problems("nf-1-1")[0]
    assert asked[0] == b"packets\n" and b'"iface-stat"' in asked[1]


def test_datagrams_of_nginx_are_those_of_the_guest_and_bypassing_packets_are_reported(tmp_path: Path) -> None:
    snmp = "Ip: InReceives\nIp: 9\nUdp: InDatagrams InErrors OutDatagrams\nUdp: {} 5 {}"
    told = (snmp.format(4000, 3990), snmp.format(3000, 3000), "no counters")
    with guest(tmp_path, "qemu_nginx_proxy", *told, received=5000) as (made, asked):
        assert made.processed()["nf-1-1"] == ProcessedPackets(3990, 15)
        assert made.problems("nf-1-1") == ("5000 packets entered the guest of nf-1-1, and its nginx saw 3005 of them",)
        assert "no counter" in made.problems("nf-1-1")[0]
    assert asked == [b"datagrams\n"] * 3


def test_packets_that_bypassed_the_rules_are_reported(tmp_path: Path) -> None:
    told = ('{"nftables": [{"counter": {"name": "accepted", "packets": 7}}]}', '{"nftables": [{"metainfo": {}}]}')
    with guest(tmp_path, "qemu_firewall", *told, received=1_000_000) as (made, asked):
        assert made.problems("nf-1-1") == ("1000000 packets entered the guest of nf-1-1, and its rules saw 7 of them",)
        assert made.problems("nf-1-1") == ("the guest of nf-1-1 has no counter accepted",)
    assert asked == [b"counters\n"] * 2


@pytest.mark.skipif(shutil.which("perl") is None, reason="no perl here")
def test_the_guest_sends_lines_to_a_control_socket_and_prints_whole_answers(tmp_path: Path) -> None:
    script = PROJECT / "resources" / "templates" / "guest-control.pl"
    argv = ["perl", str(script), str(tmp_path / "control"), '{"a": 1}\t{"b": 2}']
    told = (b'{"return":\n"OK"}\n', b'{"message":{"pkts":1,"drop":0},"return":"OK"}')
    with answering(tmp_path / "control", *told) as asked:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    first, second = done.stdout.splitlines()
    assert (first, json.loads(second)["message"]) == ('{"return": "OK"} ', {"pkts": 1, "drop": 0})
    assert asked == [b'{"a": 1}\n', b'{"b": 2}\n']
    gone = subprocess.run([*argv[:2], str(tmp_path / "none"), "{}"], capture_output=True, text=True, check=False)
    assert (gone.returncode != 0, gone.stderr) == (True, f"{tmp_path}/none: No such file or directory\n")


def test_a_guest_that_is_gone_or_silent_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(CsitError, match="the guest of nf-1-1 cannot be asked: No such file"):
        guests.GuestConnections("nf-1-1", tmp_path / "none").ask("packets")
    with answering(tmp_path / "early", b"12"), pytest.raises(CsitError, match=r"guest of nf-1-1 .* closed"):
        guests.GuestConnections("nf-1-1", tmp_path / "early").ask("packets")
    with socket.socket(socket.AF_UNIX) as there:
        there.bind(str(tmp_path / "silent"))
        there.listen()
        with pytest.raises(NotReady, match=r"answer of the guest of nf-1-1 to 'packets' not ready after 0\.1 s"):
            guests.GuestConnections("nf-1-1", tmp_path / "silent", 0.1).ask("packets")


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


def test_its_vpp_takes_the_network_cards_where_qemu_puts_them() -> None:
    function = vpp_guests_plan().functions[0]
    sides = vpp_guest.interfaces_inside(vpp_guests_plan(), function)
    assert making(sides, 1518)[::2] == tuple(f"create interface virtio 0000:00:1{n}.0 bind" for n in (1, 2))
    assert making(sides, 1518)[1::2] == tuple(f"set interface name virtio-0/0/1{n}/0 csn1x1i{n}" for n in (1, 2))
    nics = tuple(GuestNic(side.mac, 7, 1500) for side in (function.left, function.right))
    argv = arguments("nf", Hardware("tcg", 800, 2, nics), (Path("k"), Path("i")), "")
    devices = [word for word in argv if word.startswith("virtio-net-pci")]
    for number, (side, device) in enumerate(zip(sides, devices, strict=True), 1):
        assert f"addr=0x1{number},mac={side.mac}," in device
    assert routing(function)[0] == f"set interface ip address {sides[0].name} {function.left.address}"


def test_its_configuration_is_a_file_for_a_vpp_with_the_guest_to_itself(tmp_path: Path) -> None:
    plan = vpp_guests_plan()
    inside = vpp_guest.VppInside(plan, NODE)
    words = inside.arguments(plan.functions[0], tmp_path)
    assert f"name=opt/csit/startup.conf,file={tmp_path}/nf-1-1.startup.conf" in words
    assert f"socket,id=cli,path={tmp_path}/nf-1-1.cli,server=on,wait=off" in words
    text = (tmp_path / "nf-1-1.startup.conf").read_text(encoding="utf-8")
    for line in (
        "main-core 0", "corelist-workers 1", "cli-listen 127.0.0.1:5002", "main-heap-page-size 2m", "page-size 2m",
        f"runtime-dir {vpp_guest.FOLDER}",
    ):  # fmt: skip
        assert f"  {line}\n" in text
    assert "_plugin.so" not in text, "its driver of network cards is no plugin"
    assert "hugepages=284" in inside.command_line(plan.functions[0], 1500).split()
    assert inside.memory_mb("nf-1-1") == 128 + 128 + 568


def test_the_first_program_of_vpp_is_sound_and_looks_for_what_qemu_was_given() -> None:
    script = vpp_init(["virtio", "uio_pci_generic"], Path("/opt/vpp/bin/vpp"), parse(SHOWN))
    assert subprocess.run(["sh", "-n"], input=script, text=True, check=False).returncode == 0
    assert script.index("insmod /modules/virtio.ko") < script.index("insmod /modules/uio_pci_generic.ko")
    assert "LD_LIBRARY_PATH=/opt/vpp/lib/x86_64-linux-gnu:/lib/x86_64-linux-gnu:/lib64\n" in script
    assert "/opt/vpp/bin/vpp -c /run/vpp/startup.conf &" in script
    assert '":138A 00000000:0000 0A"' in script, "5002, as the kernel shows it"
    assert "by_name/opt/csit/startup.conf/raw" in script


def test_libraries_are_read_from_what_the_loader_says_and_carried_with_their_folders(tmp_path: Path) -> None:
    assert [path.name for path in parse(SHOWN)] == ["libvnet.so.26.10", "libc.so.6", "ld-linux-x86-64.so.2"]
    with pytest.raises(Unsupported, match=r"programs of a guest need libraries that are not here: libnl-3\.so\.200"):
        parse(f"{SHOWN}\tlibnl-3.so.200 => not found\n")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "a.so").write_bytes(b"a")
    rows = carried([tmp_path / "lib" / "a.so"])
    inside = str(tmp_path.relative_to("/"))
    assert [row.path for row in rows][-3:] == [inside, f"{inside}/lib", f"{inside}/lib/a.so"]
    assert rows[0].path == inside.split("/", 1)[0], "a folder comes before what is in it"


@pytest.fixture
def base(tmp_path: Path) -> Image:
    """An image that is complete, and boots nothing; beside it an installation of another program as VPP."""
    place = tmp_path / "base"
    place.mkdir()
    (place / "initramfs.cpio").write_bytes(cpio([file("init", b"first", executable=True)]))
    (place / "vmlinuz").touch()
    description = Description(kernel_version="6.1", packages={}, modules=(), user_space_modules=("uio",), digests={})
    (place / "image.json").write_text(description.model_dump_json(), encoding="utf-8")
    program = tmp_path / "vpp" / "bin" / "vpp"
    program.parent.mkdir(parents=True)
    program.write_bytes(Path("/bin/true").resolve().read_bytes())
    program.chmod(0o755)
    return Image(place)


def test_a_vpp_too_large_for_its_guest_is_refused_before_it_boots(tmp_path: Path, base: Image) -> None:
    prefix, plan = tmp_path / "vpp", vpp_guests_plan()
    node = DutNode.model_validate({**NODE.model_dump(), "vpp": {"prefix": str(prefix)}})
    assert vpp_guest.VppInside(plan, node).initramfs("nf-1-1", base, tmp_path / "cache").exists()
    small = plan.functions[0].model_copy(update={"limits": Limits(memory_mib=568 + 50)})
    inside = vpp_guest.VppInside(plan.model_copy(update={"functions": (small,)}), node)
    sentence = rf"^nf-1-1: a guest with the VPP of {prefix} needs (\d+) MB .* has 50 MB: .* vm.memory_mb"
    with pytest.raises(Unsupported, match=sentence):
        inside.initramfs("nf-1-1", base, tmp_path / "cache")


def test_a_guests_archive_is_made_once_for_each_vpp(tmp_path: Path, base: Image) -> None:
    prefix, cache = tmp_path / "vpp", tmp_path / "cache"
    program = prefix / "bin" / "vpp"
    first = vpp_guest.initramfs(base, prefix, cache)
    content = first.read_bytes()
    assert content.startswith(base.initramfs.read_bytes()), "the image of all guests, and then what is on top"
    names = re.findall(rb"(?:bin/vpp|lib/\S*/libc\.so\.6|init)(?=\0)", content)
    assert names[0] == names[-1] == b"init"
    assert {name.rpartition(b"/")[2] for name in names} == {b"init", b"vpp", b"libc.so.6"}
    made = first.stat().st_mtime_ns
    assert vpp_guest.initramfs(base, prefix, cache).stat().st_mtime_ns == made
    program.write_bytes(program.read_bytes() + b"\0")
    assert vpp_guest.initramfs(base, prefix, cache) != first
    assert not first.exists(), "the last one only is kept"


def test_missing_parts_are_reported(tmp_path: Path) -> None:
    node = cast(DutNode, SimpleNamespace(settings=lambda _: Vpp(prefix=str(tmp_path))))
    assert any("there is no program" in str(problem) for problem in vpp_guest.missing(node, NfKind("qemu_vpp")))
