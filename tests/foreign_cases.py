"""Ordinary files of other people that have broken this program, each with the command that a user would type.

    .venv/bin/python -m tests.foreign_cases [FOLDER]

Without a folder inputs of our own making are used, which a test runs as well; another folder has inputs of the same
names in folders of the same beginnings. Prints a line for each command, and ends with 1 if one is not as it should be.
"""

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from click.testing import Result
from typer.testing import CliRunner

from csit_utils.cli import make_app
from resources.libraries.python.errors import CsitError
from resources.libraries.python.model.request.frames import frame
from resources.libraries.python.paths import PROJECT
from tests.captures import MIX, pcap, pcapng, with_fcs
from tests.unit.csit_utils.builders import result
from tests.unit.csit_utils.foreign_files import csit, csit_ndrpdr, nfvbench, not_reached, searched
from tests.unit.csit_utils.robot_output import write_output_xml

LAB = (PROJECT / "topologies" / "available" / "lab-2n-vpp.yaml").read_text(encoding="utf-8")
SIM = str(PROJECT / "topologies" / "sim.yaml")
CELL = ("--cell", "CSC 1x1 1c")


@dataclass(frozen=True)
class ForeignCase:
    """Files, a command and what comes of it."""

    folder: str
    """Its beginning."""
    files: str
    """Pattern of their names."""
    words: tuple[str, ...]
    """Of the command; {file} is a file."""
    said: str
    """Regular expression; is in what is printed or refused."""
    status: int = 0
    refused: bool = False
    """Whether it ends with a sentence of ours."""


CASES = (
    ForeignCase("03", "base.yaml", ("plan", "{file}", *CELL), "fits"),
    ForeignCase("03", "mac-dup.yaml", ("plan", "{file}", *CELL), r"is the MAC address of TG\.port1 too", refused=True),
    ForeignCase("03", "mac-multicast.yaml", ("plan", "{file}", *CELL), "is a multicast address", refused=True),
    ForeignCase("03", "pci-dup.yaml", ("plan", "{file}", *CELL), r"is the PCI address of TG\.port1 too", refused=True),
    ForeignCase("03", "same-host.yaml", ("plan", "{file}", *CELL), "is TG too", refused=True),
    ForeignCase("05", "*.json", ("show", "{file}"), "pps|64B-"),
    ForeignCase("06", "*ndr-1.json", ("show", "{file}"), r"< [\d.]+ [kM]pps"),
    ForeignCase("06", "0*.json", ("show", "{file}"), r"[\d.]+ [kM]pps"),
    ForeignCase("07", "bom.txt", ("plan", SIM, "--cpus", "DUT1={file}", *CELL), "fits"),
    ForeignCase("08", "merged.xml", ("show", "{file}"), r"[\d.]+ [kM]pps"),
    ForeignCase("08", "out.json", ("show", "{file}"), r"[\d.]+ [kM]pps"),
    ForeignCase("08", "removed.xml", ("show", "{file}"), "without the result record", refused=True),
    ForeignCase("08", "removed.xml", ("answer", "{file}", "--rate", "1pps"), "without the result record", refused=True),
    ForeignCase("15", "0*.info.json", ("show", "{file}"), "pps|FAIL: .*Minimal rate loss ratio"),
    ForeignCase("18", "lab-3-pages-of-1gb.yaml", ("plan", "{file}", *CELL), "0 and 3 available"),
)


def make_inputs(folder: Path) -> None:
    """Write inputs of our own making."""

    def write(name: str, content: str | bytes) -> Path:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    for name, old, new in (
        ("base", "", ""),
        ("mac-dup", "00:00:5e:00:53:21", "00:00:5E:00:53:11"),
        ("mac-multicast", "00:00:5e:00:53:11", "01:00:5e:00:53:11"),
        ("pci-dup", "0000:17:00.1", "0000:17:00.0"),
        ("same-host", "192.0.2.12", "192.0.2.11"),
    ):
        write(f"03/{name}.yaml", LAB.replace(old, new) if old else LAB)
    duplicates = searched()
    for bound in ("ndr", "pdr"):
        duplicates[bound]["stats"]["overall"]["drop_rate_percent"] = -0.0001
    write("05/negative-drop.json", f"\ufeff{json.dumps(nfvbench({'64': duplicates}))}")
    write("06/no_ndr-1.json", json.dumps(nfvbench({"64": not_reached(0)})))
    rows = b"".join(b"%d,%d,0,0\r\n" % (cpu, cpu) for cpu in range(64))
    write("07/bom.txt", b"\xef\xbb\xbf# CPU,Core,Socket,Node\r\n" + rows)
    record = result(histograms=False)
    output = write_output_xml(folder / "output.xml", [record])
    text = output.read_text(encoding="utf-8")
    output.unlink()
    write("08/merged.xml", text)
    write("08/removed.xml", re.sub(r"<msg [^>]*>[^<]*CSIT-RESULT.*?</msg>", "", text, flags=re.DOTALL))
    write("10/without.pcap", pcap(MIX))
    write("10/declared.pcap", pcap(with_fcs(MIX), link_type=0x24000001))
    write("10/interface.pcapng", pcapng(with_fcs(MIX), fcs_bits=32))
    write("10/packets.pcapng", pcapng(with_fcs(MIX), flags=4 << 5))
    write("15/00.info.json", json.dumps(csit(csit_ndrpdr())))
    failed = csit({"type": "unknown"}, passed=False, message="Minimal rate loss ratio 0.1")
    write("15/01-fail.info.json", json.dumps(failed))
    write("18/lab-3-pages-of-1gb.yaml", LAB.replace("hugepages_1gb: 64", "hugepages_1gb: 3"))


def failures(folder: Path) -> Iterator[tuple[str, str]]:
    """Run all commands whose files are there; yield each command, and what is wrong or nothing."""
    for case in CASES:
        for file in sorted(found for place in folder.glob(f"{case.folder}*") for found in place.glob(case.files)):
            words = [word.replace("{file}", str(file)) for word in case.words]
            done: Result = CliRunner().invoke(make_app(words), words)
            said = f"{done.output}{done.exception if isinstance(done.exception, CsitError) else ''}"
            as_meant = (
                isinstance(done.exception, CsitError)
                if case.refused
                else done.exit_code == case.status and (done.exception is None or case.status != 0)
            )
            right = as_meant and re.search(case.said, said, re.DOTALL)
            yield " ".join(words), "" if right else f"{done.exit_code} {done.exception!r}: {said[-400:]}"
    captures = sorted(found for place in folder.glob("10*") for found in place.glob("*.pcap*"))
    sizes = {file: tuple((part.frame_bytes, part.weight) for part in frame(f"pcap:{file}").parts) for file in captures}
    for file, found in sizes.items():
        yield (
            f"frames of {file}",
            "" if found == sizes[captures[-1]] else f"{found}, and {sizes[captures[-1]]} of another",
        )


def main(folder: Path | None) -> int:
    """Run the commands; return the exit status."""
    with tempfile.TemporaryDirectory() as made:
        if folder is None:
            make_inputs(Path(made))
        wrong = 0
        for command, what in failures(folder or Path(made)):
            print(f"{'FAILED' if what else 'ok    '} {command}{f': {what}' * bool(what)}")
            wrong += bool(what)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else None))
