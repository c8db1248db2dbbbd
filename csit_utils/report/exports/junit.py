"""The decision of a gate as JUnit XML."""

import re
from xml.etree.ElementTree import Element, SubElement, tostring

from csit_utils.analysis.comparisons.comparison import Change
from csit_utils.analysis.comparisons.gate import Decision
from csit_utils.report.units import amount, percent

_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def junit_xml(found: Decision) -> bytes:
    """Return one test case per cell: failed if it regressed, skipped if it could not be judged."""
    cases = len(found.fallen) + len(found.kept) + len(found.unjudged)
    suite = Element(
        "testsuite", name="gate", tests=str(cases), failures=str(len(found.fallen)), errors="0",
        skipped=str(len(found.unjudged)),
    )  # fmt: skip
    for change in found.fallen:
        SubElement(_case(suite, change.name), "failure", type="regression", message=_clean(_words(change)))
    for change in found.kept:
        _case(suite, change.name)
    for unjudged in found.unjudged:
        SubElement(_case(suite, unjudged.name), "skipped", message=_clean(unjudged.reason))
    return bytes(tostring(suite, encoding="utf-8", xml_declaration=True))


def _case(suite: Element, name: str) -> Element:
    return SubElement(suite, "testcase", classname="density", name=_clean(name))


def _words(change: Change) -> str:
    interval = f"{percent(change.low, signed=True)} to {percent(change.high, signed=True)}"
    return (
        f"{amount(change.metric, change.a.series, change.a.mean_pps)} changed to "
        f"{amount(change.metric, change.b.series, change.b.mean_pps)}: {percent(change.change, signed=True)}, "
        f"95 % interval {interval}; {change.a.runs} and {change.b.runs} runs"
    )


def _clean(text: str) -> str:
    """Remove characters that XML does not permit."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
