"""`./csit test`: the default tier, `./csit test --all`: both tiers, `./csit test -e NAME`: what is named.

The environments of each tier are in tox.ini, and tox runs them. This says first what runs and about how long that
takes, and at the end what failed, what was skipped and why, which tests used more CPU time than their tier allows, and
what did not run.
"""

import os
import re
import resource
import signal
import subprocess
import sys
import textwrap
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from configparser import ConfigParser
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ALL = "all"
"""Label of the environments of `--all` in tox.ini; its `env_list` is the default tier."""
MINUTES = {"": 4, ALL: 60}
"""What a tier takes on a virtual machine with two cores."""
MAX_CPU_S = {"unit": 1.0, "simulated": 30.0, "traffic": 30.0}
"""CPU time that a test of the default tier may use, by environment; of one that needs more the report says so."""
_FOR_ROOT = re.compile(r"\b(?:needs?|as) root\b")
"""In the reason of a test that is skipped."""
_SHOWN = 8
"""Lines of a list at most."""
_TOX = str(Path(sys.executable).with_name("tox"))
_PLACES = ("-c", str(ROOT / "tox.ini"), "--workdir", str(ROOT / ".tox"))


@dataclass(frozen=True, slots=True)
class Test:
    """One test of a JUnit file.

    Attributes:
        cpu_s: CPU time of its process and their children; 0 where it was not recorded.
        retried: Why it failed at first, where it had another try, or nothing.
        skipped: Why, or nothing.
    """

    environment: str
    name: str
    failed: bool
    skipped: str
    cpu_s: float
    retried: str


def main(arguments: Sequence[str]) -> int:
    """Run what is asked; return the exit status of tox."""
    if not arguments or arguments == ["--all"]:
        return run_tier(ALL if arguments else "")
    if arguments[0] in {"-h", "--help"}:
        print(usage(), end="")
        return 0
    return _finished([_TOX, "run", *_PLACES, *arguments])


def usage() -> str:
    """Text of `--help`, with all environments by tier."""
    tiers = (
        ("", environments(""), f"the default tier, about {MINUTES['']} minutes on two cores"),
        (" --all", added(), f"these as well, about {MINUTES[ALL]} minutes"),
        (" -e NAME[,NAME...] [-- ARGUMENTS]", by_name_only(), "any of them by name, also:"),
    )
    text = "What follows -- is passed to pytest or the tool in question: ./csit test -e unit -- -k cores\n"
    for words, names, what in tiers:
        text += f"\n./csit test{words}   {what}\n"
        for name, description in described(names).items():
            text += textwrap.fill(description, 80, initial_indent=f"  {name:15}", subsequent_indent=" " * 17) + "\n"
    return text


def run_tier(tier: str) -> int:
    """Run all environments of a tier, several at a time as far as tox.ini lets them, and report."""
    names = environments(tier)
    print(plan_text(tier), flush=True)
    for name in names:
        junit(name).unlink(missing_ok=True)
    retries = ROOT / ".tox" / "retries"
    retries.unlink(missing_ok=True)
    os.environ["CSIT_TEST_RETRIES"] = str(retries)  # all environments are one run, see retries.py
    begin_s = time.monotonic()
    status = _finished([_TOX, "run-parallel", *_PLACES, "-p", "all", *(("-m", tier) if tier else ())])
    wall_s, used = time.monotonic() - begin_s, resource.getrusage(resource.RUSAGE_CHILDREN)
    tests, missing = results(names)
    if status:
        print("csit test: FAILED; the environments and their outputs are above")
    for name in missing:
        print(f"csit test: no results of {name}")
    print(report(tests, tier, wall_s, used.ru_utime + used.ru_stime), flush=True)
    return status


def _finished(command: Sequence[str]) -> int:
    """Run tox to its end, which ends its environments first: after Ctrl-C, which it gets as well, and SIGTERM."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background jobs ignore it, and tox would inherit that
    with subprocess.Popen(command, cwd=ROOT, env={**os.environ, "CSIT_TOOLS": sys.prefix}) as tox:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: tox.send_signal(signal.SIGINT))
        return tox.wait()


def results(names: Sequence[str]) -> tuple[list[Test], list[str]]:
    """Tests of environments, and the environments that should have left a JUnit file and did not."""
    tests, missing = [], []
    settings = _settings()
    for name in names:
        if "/tests.xml" in settings[f"testenv:{name}"]["commands"]:
            try:
                tests += read_junit(name, junit(name))
            except (OSError, ET.ParseError):
                missing.append(name)
    return tests, missing


def plan_text(tier: str) -> str:
    """What runs and about how long, and what `--all` would add."""
    names = environments(tier)
    text = f"csit test: {', '.join(names)}; about {MINUTES[tier]} minutes on two cores."
    if not tier:
        text += f" --all adds {', '.join(added())}; about {MINUTES[ALL]} minutes."
    return text


def report(tests: Sequence[Test], tier: str, wall_s: float, cpu_s: float) -> str:
    """The last lines: counts, second tries, tests that were skipped, took too long or did not run."""
    failed = [test for test in tests if test.failed]
    skipped = Counter((test.environment, test.skipped) for test in tests if test.skipped)
    passed = len(tests) - len(failed) - skipped.total()
    longest = sorted((test for test in tests if over(test)), key=lambda test: -test.cpu_s)
    lines = [
        *_shown([f"{test.environment}: failed: {test.name}" for test in failed]),
        *(f"{test.environment}: passed on retry: {test.name}: {test.retried}" for test in tests
          if test.retried and not test.failed),
        *_shown([f"{name}: {number} skipped: {why}" for (name, why), number in skipped.most_common()]),
        *_shown([f"{test.environment}: slow: {test.name} used {test.cpu_s:.1f} s of CPU time, "
                 f"the limit is {MAX_CPU_S[test.environment]:g} s" for test in longest]),
    ]  # fmt: skip
    if rootless := sum(number for (_, why), number in skipped.items() if _FOR_ROOT.search(why)):
        lines.append(f"{rootless} of {len(tests)} tests were skipped for lack of root: run this as root, too")
    if not tier:
        lines.append(f"not run: {', '.join(added())} (./csit test --all, or -e NAME for one)")
    lines.append(f"{minutes(wall_s)}, {cpu_s:.0f} s of CPU time")
    lines = [f"csit test: {line}" for line in lines]
    return "\n".join([*lines, f"{passed} passed, {len(failed)} failed, {skipped.total()} skipped"])


def _shown(lines: Sequence[str]) -> Iterator[str]:
    yield from lines[:_SHOWN]
    if len(lines) > _SHOWN:
        yield f"... and {len(lines) - _SHOWN} more, see .tox/*/tests.xml"


def minutes(seconds: float) -> str:
    """A duration as people say it."""
    whole, rest = divmod(round(seconds), 60)
    return f"{whole} min {rest} s" if whole else f"{rest} s"


def over(test: Test) -> bool:
    """Whether a test used more CPU time than its tier allows."""
    return test.cpu_s > MAX_CPU_S.get(test.environment, float("inf"))


def junit(environment: str) -> Path:
    """Where an environment leaves its results, as tox.ini says."""
    return ROOT / ".tox" / environment / "tests.xml"


def read_junit(environment: str, path: Path) -> Iterator[Test]:
    """Tests of a JUnit file that pytest wrote."""
    for case in ET.parse(path).iter("testcase"):  # noqa: S314 - of our own making
        found = {each.get("name"): each.get("value") or "" for each in case.iter("property")}
        skipped = case.find("skipped")
        yield Test(
            environment=environment,
            name=f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}",
            failed=case.find("failure") is not None or case.find("error") is not None,
            skipped="" if skipped is None else skipped.get("message") or "no reason given",
            cpu_s=float(found.get("cpu_s", 0)),
            retried=found.get("failed at first", ""),
        )


def environments(tier: str) -> list[str]:
    """Of a tier, in tox.ini's order."""
    tox = _settings()["tox"]
    labels = dict(row.split(" = ") for row in tox["labels"].strip().splitlines())
    return (labels[tier] if tier else tox["env_list"]).split(", ")


def added() -> list[str]:
    """Environments that `--all` adds."""
    return [name for name in environments(ALL) if name not in environments("")]


def by_name_only() -> list[str]:
    """Environments of no tier."""
    sections = (name for name in _settings().sections() if name.startswith("testenv:"))
    return [name for name in (each.removeprefix("testenv:") for each in sections) if name not in environments(ALL)]


def described(names: Sequence[str]) -> Mapping[str, str]:
    """What tox.ini says of environments."""
    settings = _settings()
    return {name: settings[f"testenv:{name}"]["description"] for name in names}


def _settings() -> ConfigParser:
    settings = ConfigParser(interpolation=None)
    settings.read(ROOT / "tox.ini", encoding="utf-8")
    return settings


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
