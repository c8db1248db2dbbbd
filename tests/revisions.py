"""Everything that users see on the simulated testbed, of two revisions side by side, before and after a restructuring.

Run by `./csit test -e revisions -- REVISION`. Both run the suites on the simulated testbed and every command that reads
the results; records, pages, CSV files, console output and what Robot Framework logged are compared line by line. The
older revision runs twice: lines that differ between its two runs (times of day, durations) are noise, and ignored.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from robot.api import ExecutionResult, ResultVisitor
from robot.result import Keyword, Message, TestCase

ROOT = Path(__file__).resolve().parents[1]
TOPOLOGY = "topologies/sim.yaml"
SPECS = "tests/characterization/specs"
STEPS = {
    "density": f"robot -v TOPOLOGY:{TOPOLOGY} -v CELLS:{{1,2,4}}x{{1,2}} -d OUT/density tests/density",
    "mixed": f"robot -v TOPOLOGY:{TOPOLOGY} -v CELLS:1-4x1 -v FRAMES:IMIX -v NF_SIZES:0.5c,2c -d OUT/mixed "
    "--suite csc-ndrpdr tests/density",
    "studies": f"robot -v TOPOLOGY:{TOPOLOGY} -d OUT/studies tests/characterization",
    "resume": f"robot -v TOPOLOGY:{TOPOLOGY} -v CELLS:{{1,2,4}}x{{1,2}} -v RESUME:OUT/density -d OUT/resumed "
    "tests/density",
    "report": "report OUT/density/output.xml OUT/mixed/output.xml OUT/studies/output.xml -o OUT/site --csv OUT/csv "
    "--reference fdio-2019 --reference nfv-vital --reference zeng --reference probius --reference troia",
    "show": "show OUT/density/output.xml OUT/studies/output.xml --why",
    "import": "import OUT/density OUT/mixed/output.xml OUT/studies --into OUT/history --label golden",
    "show-dataset": "show OUT/history",
    "export": "export OUT/density/output.xml --uti -o OUT/uti",
    "compare": "compare OUT/density/output.xml OUT/mixed/output.xml --sort cell",
    "compare-2019": "compare fdio-2019 OUT/density/output.xml --sort cell --insist",
    "trend": "trend OUT/history --all",
    "gate": "gate OUT/density/output.xml OUT/density/output.xml",
    "answer": "answer OUT/density/output.xml --rate 500kpps --p99 100us",
    "answer-csv": "answer OUT/density/output.xml --rate 1Gbit/s --format csv",
    "profile": "profile OUT/studies/output.xml",
    "suspects": "suspects OUT/studies/output.xml --why",
    "place": "place OUT/studies/output.xml",
    "outcome": "outcome OUT/density/output.xml OUT/studies/output.xml",
    "explain": "explain",
    "schema": "schema",
    "plan": f"plan {TOPOLOGY}",
    "plan-local": "plan topologies/local.yaml",
    "plan-lab": "plan topologies/available/lab-2n-vpp.yaml",
    "size": f"size {SPECS}/clearwater/deployment.json {SPECS}/clearwater/workload.json",
    "size-ids": f"size {SPECS}/ids/deployment.json {SPECS}/ids/udp-64b.json",
    "chains": f"chains {SPECS}/chains/four-vnfs.yaml --list",
    "interference": f"interference {SPECS}/interference/pairs.yaml --list",
    "outage": f"outage {SPECS}/outage/routers.yaml --list",
    "stateful": f"stateful {SPECS}/stateful/firewall.yaml",
    "bad-topology": f"plan {SPECS}/chains/four-vnfs.yaml",
    "bad-spec": f"chains {TOPOLOGY}",
    "bad-file": "show README.md",
}
"""Name: words of a command, with OUT for the folder of its results."""
_NOISE = {
    re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d([.,]\d+)?)?([+]\d\d:\d\d)?"): "TIME",
    re.compile(r'("(?:duration|cpu_s|lasted_s|deploy_s|remove_s)": )[\d.e-]+'): r"\1DURATION",
    re.compile(r'("git_dirty": )(true|false)'): r"\1DIRTY",
    re.compile(r"-[0-9a-f]{8}(?=\.html)"): "-DIGEST",
    re.compile(r"(?<![.\w])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}\b"): "DIGEST",
    re.compile(r'(?<=[-"])\d{8}(?=["\s,-])'): "DIGEST",  # one of eight digits without a letter
    re.compile(r"((?:Deployed in|removed in|Deployment:|Removal:) )[\d.]+ \S?s\b"): r"\1DURATION",
}
"""What differs in every run, and the word in its place."""
_WITHIN_S = 1800.0
_LONG = 400
"""Characters: longer words are packed data, whose content a record has in plain text."""
_SHOWN = 40
"""Lines of differences for each file."""


def main(arguments: Sequence[str]) -> int:
    """Compare; return 0 where nothing differs, 1 where something does."""
    asked = argparse.ArgumentParser(prog="./csit test -e revisions --", description=__doc__)
    asked.add_argument("revision", help="of git, the one before")
    asked.add_argument("--keep", type=Path, help="folder for the results of all three runs and all differences")
    options = asked.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="csit-revisions-") as scratch:
        folder = Path(scratch)
        # All runs are at the same place, so that paths in their outputs are the same.
        checkout = folder / "checkout"
        subprocess.run(["git", "clone", "-q", "--shared", str(ROOT), str(checkout)], check=True)
        subprocess.run(["git", "-C", str(checkout), "checkout", "-q", "--detach", options.revision], check=True)
        runs = [run(checkout, number) for number in (1, 2)]
        for name in ("resources", "csit_utils", "tests", "topologies", "docs", "jenkins"):
            shutil.rmtree(checkout / name)
            shutil.copytree(ROOT / name, checkout / name)
        runs.append(run(checkout, 3))
        found = list(differences(*runs))
        if options.keep:
            shutil.copytree(folder, options.keep, ignore=shutil.ignore_patterns("checkout"), dirs_exist_ok=True)
            (options.keep / "differences.diff").write_text(
                "\n".join(line for each in found for line in each), encoding="utf-8"
            )
    for each in found:
        print("\n".join(each[:_SHOWN]))
        if len(each) > _SHOWN:
            print(f"... and {len(each) - _SHOWN} more lines")
    print(f"{len(found)} of {len(runs[0] | runs[2])} outputs differ")
    return 1 if found else 0


def run(checkout: Path, number: int) -> dict[str, list[str]]:
    """Run all steps in a checkout; return the lines of every output by its name. Files stay beside the checkout."""
    out = checkout.with_name("out")
    out.mkdir()
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("CSIT_", "PYTHON"))},
        **{"PYTHONPATH": str(checkout), "COLUMNS": "100", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"},
    }
    outputs: list[tuple[str, str]] = []
    steps = {name: shlex.split(words.replace("OUT/", f"{out}/")) for name, words in STEPS.items()}
    for name in ("", *re.findall(r"^  ([a-z]+) ", _called(checkout, ["--help"], environment), re.MULTILINE)):
        steps[f"help-{name}"] = [*([name] if name else []), "--help"]
    for name, words in steps.items():
        print(f"{number} of 3: {name}", file=sys.stderr)
        outputs.append((f"{name}.console", _called(checkout, words, environment)))
    for path in sorted(path for path in out.rglob("*") if path.is_file()):
        if text := _text(path):
            outputs.append((str(path.relative_to(out)), text))
    out.rename(out.with_name(str(number)))
    return named(outputs)


def named(outputs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Lines by name, without what differs in every run: times of day, durations and digests.

    Args:
        outputs: Name and text. Names that differ by a digest only get a number, in the order of their texts.
    """
    found: dict[str, list[list[str]]] = {}
    for name, text in outputs:
        found.setdefault(_neutral(name), []).append(_neutral(text).splitlines())
    return {
        name if len(texts) == 1 else f"{name} {number}": lines
        for name, texts in found.items()
        for number, lines in enumerate(sorted(texts), 1)
    }


def _neutral(text: str) -> str:
    for pattern, word in _NOISE.items():
        text = pattern.sub(word, text)
    return text


def _called(checkout: Path, words: Sequence[str], environment: dict[str, str]) -> str:
    called = subprocess.run(
        [sys.executable, "-m", "csit_utils", *words],
        cwd=checkout, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        timeout=_WITHIN_S, check=False, text=True, errors="replace",
    )  # fmt: skip
    return f"{called.stdout}\nexit status {called.returncode}\n"


def _text(path: Path) -> str:
    if path.name in {"log.html", "report.html"} or path.suffix not in {
        ".json",
        ".jsonl",
        ".xml",
        ".html",
        ".csv",
        ".js",
    }:
        return ""
    if path.name == "output.xml":
        return "\n".join(_logged(path))
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        return json.dumps(json.loads(text), indent=1)
    if path.suffix == ".jsonl":
        return "\n".join(json.dumps(json.loads(line), indent=1) for line in text.splitlines())
    if path.suffix == ".csv":
        return text
    return re.sub(r"(?<=[>,])", "\n", re.sub(rf"[\w+/=\\-]{{{_LONG},}}", "PACKED", text))


def _logged(path: Path) -> list[str]:
    logged = _Logged()
    ExecutionResult(path).visit(logged)
    return logged.lines


class _Logged(ResultVisitor):  # type: ignore[misc] # Robot Framework has no types there
    """What a person reads of a run: tests with tags and results, keywords with arguments, and messages."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def start_test(self, test: TestCase) -> None:
        """See ResultVisitor."""
        self.lines += [
            f"test {test.full_name}",
            f"tags {' '.join(test.tags)}",
            f"{test.status} {test.message}",
            test.doc,
        ]

    def start_keyword(self, keyword: Keyword) -> None:
        """See ResultVisitor."""
        self.lines.append(f"keyword {keyword.full_name} {keyword.status} {' '.join(map(str, keyword.args))}")

    def start_message(self, message: Message) -> None:
        """See ResultVisitor."""
        self.lines += [line for line in message.message.splitlines() if len(line) < _LONG]


def differences(
    first: dict[str, list[str]], second: dict[str, list[str]], now: dict[str, list[str]]
) -> Iterator[list[str]]:
    """Lines of a diff for each output that differs between the revisions by more than it does between two runs of one.

    Args:
        first: Outputs of the older revision.
        second: Those of its second run.
        now: Those of the newer revision.
    """
    for name in sorted(first.keys() | now.keys()):
        before, after = first.get(name, []), now.get(name, [])
        if before == after:
            continue
        noise = _touched(_diff(before, second.get(name, [])))
        found = _diff(before, after)
        if name in first and name in now and _touched(found) <= noise:
            continue
        yield [f"--- before/{name}", f"+++ now/{name}", *found]


def _diff(before: Sequence[str], after: Sequence[str]) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder, "before"), Path(folder, "after")
        for path, lines in zip(paths, (before, after), strict=True):
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        words = ["diff", "--unified=0", "--speed-large-files", *map(str, paths)]
        made = subprocess.run(words, capture_output=True, text=True, timeout=_WITHIN_S, check=False)
    return made.stdout.splitlines()[2:]


def _touched(diff: Sequence[str]) -> set[int]:
    """Numbers of the lines before that were changed or removed, or behind which something was added."""
    heads = [re.match(r"@@ -(\d+)(?:,(\d+))? ", line) for line in diff if line.startswith("@@ -")]
    return {int(head[1]) + at for head in heads if head for at in range(max(1, int(head[2] or 1)))}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
