"""Every variable that a suite reads: a wrong value is one sentence before anything is measured."""

from functools import cache
from pathlib import Path

import pytest
from robot import running
from robot.variables import Variables

from resources.libraries.python.errors import ConfigError
from resources.libraries.python.model.request.variables import VARIABLES
from resources.libraries.python.paths import PROJECT
from resources.libraries.python.studies.shared.choices_before_run import _names, _refuse_wrong, _suites

SUITES = [
    each for folder in ("density", "characterization") for each in (PROJECT / "tests" / folder).glob("[!_]*.robot")
]
WRONG = {
    "AT_RATE": "fast", "BACK_TO_BACK": "0", "CACHE_WAYS": "two", "CELLS": "0x1",
    "DEPARTURES": "never", "ENERGY": "0", "FIREWALL": "no_such", "FLOWS": "many", "FRAME": "63B", "FRAMES": "63B",
    "GENERATOR": "none", "IP_VERSION": "5", "LOSSES": "0",
    "MORE": "true", "NAT": "no_such", "NF_KINDS": "no_such", "NF_SIZES": "0.3c", "NIC_MODEL": "ne2000",
    "NOISE_FLOOR": "99", "PREDICT": "maybe", "PRIORS": "/nowhere", "PROFILES": "/nowhere", "PROTOCOL": "SCTP",
    "QUALIFY": "maybe", "RESUME": "/nowhere", "ROUTER": "no_such+linux_router",
    "SEARCH": "rfc2544,width=0", "SERVICE_TYPE": "XYZ", "SET": "outage.a=1;b", "STACKS": "1h", "STOP_LOSS": "all",
    "SWEEP_DURATION": "0", "SWEEP_RATES": "fast", "SWEEP_WIDTH": "wide", "TEST_TYPE": "FAST",
    "TOPOLOGY": "/nowhere.yaml", "VSWITCH": "0",
}  # fmt: skip
"""A wrong value of every variable."""
NAMED = {"ROUTER": "no_such", "SEARCH": "width=0"}
"""The part of it that the sentence repeats."""
DIFFERENT = [each for each in SUITES if each.parent.name != "density" or each.stem == "csc-ndrpdr"]
"""Suites of density differ in what they measure."""


@cache
def suite(path: Path) -> running.TestSuite:
    return running.TestSuite.from_file_system(path)


def read_by(path: Path) -> set[str]:
    ((_, files, libraries),) = _suites(suite(path))
    return {*_names(files, libraries)}


def test_every_declared_variable_is_read_by_a_suite_and_every_other_one_is_of_the_matrix() -> None:
    read = {name for path in SUITES for name in read_by(path)}
    assert read == {*VARIABLES, "SERVICE_TYPE", "TEST_TYPE"}
    assert read <= WRONG.keys(), "none is forgotten here"


@pytest.mark.parametrize("path", DIFFERENT, ids=lambda path: path.stem)
def test_a_wrong_value_of_a_variable_is_one_sentence_that_has_it(path: Path) -> None:
    told = {name: said(path, name) for name in sorted(read_by(path))}
    assert {name: text for name, text in told.items() if NAMED.get(name, WRONG[name]) not in text or "\n" in text} == {}


def said(path: Path, name: str) -> str:
    given = Variables()
    given["${TOPOLOGY}"] = str(PROJECT / "topologies" / "sim.yaml")
    given[f"${{{name}}}"] = WRONG[name]
    try:
        _refuse_wrong(
            _suites(suite(path)), given, {suite(path).source: {test.name for test in suite(path).tests}}, dry_run=False
        )
    except ConfigError as error:
        return str(error)
    return "it is accepted"
