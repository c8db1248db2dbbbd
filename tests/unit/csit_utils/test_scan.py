"""Reading of output.xml by its bytes gives what an XML parser gives, and says what is wrong with a file."""

import io
from datetime import datetime
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pytest
from defusedxml.ElementTree import ParseError, iterparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from csit_utils.dataset.blocks import ScannedTest, logged_cells
from csit_utils.dataset.items import Problem, Refusal, Status
from csit_utils.dataset.robot_output import XmlScanner
from resources.libraries.python.recording.marker import NOT_STARTED, REFUSED_MARKER, RESULT_MARKER
from resources.libraries.python.studies.density.model import REFUSED_CELLS
from tests.unit.csit_utils.builders import refused_cell
from tests.unit.examples import share

WORDS = st.text(st.characters(exclude_categories=("Cc", "Cs"), exclude_characters="\ufffe\uffff"), max_size=12)
NAMES = st.one_of(WORDS, st.sampled_from(["<test name='x'>", "a \"b\" 'c'", "a &lt; b", "]]>", " status=", "x > CSIT"]))
RECORDS = st.one_of(
    st.none(), st.sampled_from(['{"packed":"eJw=","n":"a<b>&amp;\\"ü"}', "{}", "{"]), WORDS.map(lambda text: "{" + text)
)
REFUSED = REFUSED_CELLS.dump_json((refused_cell(8, 8, "needs <33>").refused,)).decode()
STATUSES = st.sampled_from(["PASS", "FAIL", "SKIP", "NOT RUN"])

SAID = [f"not {RESULT_MARKER}", f"&lt;msg>{RESULT_MARKER}", "<test> </test>", f" {RESULT_MARKER}{{}}"]
ARGUMENTS = ["", f"<arg>{RESULT_MARKER}{{}}</arg>", "<tag>of a keyword</tag>", "<doc>&lt;test></doc>"]
METADATA = ["", '<meta name="Does not fit: CSC 8R8C NF-1c vSwitch-1c">needs &lt;33></meta>', '<meta name="x">y</meta>']
MESSAGES = (WORDS | st.sampled_from(SAID)).map(
    lambda text: f'<msg time="2026-11-20T10:00:00" level="INFO">{escape(text)}</msg>'
)


@st.composite
def keywords(draw: st.DrawFn, depth: int = 2) -> str:
    kind = draw(st.sampled_from(["kw", "for", "iter"])) if depth else "kw"
    inner = draw(st.lists(keywords(depth - 1), max_size=2)) if depth else []
    arg, told = draw(st.sampled_from(ARGUMENTS)), draw(st.lists(MESSAGES, max_size=2))
    inside = f"{''.join(told)}{''.join(inner)}{arg}{_status(draw(STATUSES), '')}"
    return f"<{kind} name={quoteattr(draw(NAMES))}>{inside}</{kind}>"


@st.composite
def written_tests(draw: st.DrawFn) -> str:
    opening = draw(st.sampled_from(["<msg level='INFO'>", '<msg time="2026-11-20T10:00:00" level="INFO">']))
    logged = [
        f"{opening}{escape(RESULT_MARKER + record)}</msg>" for record in draw(st.lists(RECORDS, max_size=2)) if record
    ]
    teardown = f'<kw name="Close Test" type="TEARDOWN">{"".join(logged)}{_status("PASS", "")}</kw>'
    tags = "".join(f"<tag>{escape(tag)}</tag>" for tag in draw(st.lists(WORDS.filter(bool), max_size=2)))
    body = "\n".join([*draw(st.lists(keywords(), max_size=2)), teardown])
    ended = _status(draw(STATUSES), draw(WORDS))
    line, ended = draw(st.sampled_from([(' line="3"', ended), ("", ended.replace(" start=", " starttime="))]))
    return f'<test id="s1-t1" name={quoteattr(draw(NAMES))}{line}>\n{body}\n<doc>x</doc>\n{tags}\n{ended}\n</test>\n'


@st.composite
def suites(draw: st.DrawFn, depth: int = 2) -> str:
    inner = draw(st.lists(suites(depth - 1), max_size=2)) if depth else []
    own, meta = draw(st.lists(written_tests(), max_size=2)), draw(st.sampled_from(METADATA))
    refused = f"<msg level='INFO'>{escape(REFUSED_MARKER + REFUSED)}</msg>"
    logged = draw(st.sampled_from(["", refused, "<msg>x</msg>"]))
    setup = draw(st.sampled_from(["", f"<kw name='Setup' type='SETUP'>{logged}{_status('FAIL', 'x')}</kw>"]))
    return (
        f'<suite id="s1" name={quoteattr(draw(NAMES))} source="/x">\n{setup}\n{"".join(inner)}{"".join(own)}{meta}\n'
        f"{_status('PASS', '')}\n</suite>\n"
    )


def _status(status: str, text: str) -> str:
    times = 'start="2026-11-20T10:00:00" elapsed="0.1"'
    return f'<status status="{status}" {times}' + (f">{escape(text)}</status>" if text else "/>")


def _file(suite: str) -> bytes:
    statistics = "<statistics><suite><stat name='x' id='s1'>x</stat></suite></statistics>\n<errors>\n</errors>\n"
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<robot generator="Robot 7.5">\n'
    return f"{head}{suite}{statistics}</robot>\n".encode()


class Slowly(io.BytesIO):
    """Gives a few bytes at a time."""

    def __init__(self, content: bytes, step: int) -> None:
        super().__init__(content)
        self._step = step

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(self._step, size) if size is not None and size >= 0 else self._step)


def _scanned(content: bytes, step: int = 1 << 20) -> tuple[list[ScannedTest | Refusal], list[Problem]]:
    found = list(XmlScanner("x").scan(Slowly(content, step)))
    plain = [_plain(each) for each in found if not isinstance(each, Problem)]
    return plain, [each for each in found if isinstance(each, Problem)]


def _plain(item: ScannedTest | Refusal) -> ScannedTest | Refusal:
    """Records as text; tags and start of tests with a record are in the record."""
    if not isinstance(item, ScannedTest):
        return item
    record = item.record.decode() if isinstance(item.record, bytes) else item.record
    tags, started = ((), None) if record else (item.tags, item.started_at)
    return ScannedTest(item.long_name, item.name, tags, item.status, item.message, record, started)


FILES = settings(
    max_examples=share(60), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@FILES
@given(suites(), st.integers(40, 400))
def test_it_finds_what_a_parser_finds_in_blocks_of_any_size(suite: str, step: int) -> None:
    content = _file(suite)
    expected, whole = read(content)
    assert whole
    assert _scanned(content, step) == _scanned(content) == ([_plain(each) for each in expected], [])


@FILES
@given(suites(), st.data())
def test_a_file_cut_anywhere_gives_what_a_parser_gets_and_one_problem(suite: str, data: st.DataObject) -> None:
    whole = _file(suite)
    content = whole[: data.draw(st.integers(1, len(whole) - len("</robot>\n")))]
    found, (problem,) = _scanned(content)
    assert [_uncut(each) for each in found] == [_uncut(_plain(each)) for each in read(content)[0]]
    assert "truncated or damaged" in problem.text


def _uncut(item: ScannedTest | Refusal) -> object:
    """The scanner says of a cut test what a parser cannot."""
    cut = isinstance(item, ScannedTest) and item.status is None and item.record is None
    return (item.long_name, item.tags) if isinstance(item, ScannedTest) and cut else item


@pytest.mark.parametrize(
    ("times", "started"),
    [
        ('start="2026-11-20T10:00:00.123456" elapsed="1.5"', "2026-11-20T10:00:00.123"),
        ('starttime="20261120 10:00:00.123" endtime="20261120 10:00:01.000"', "2026-11-20T10:00:00.123"),
        ('starttime="N/A" endtime="N/A"', None), ('start="2026-11-20T10:00:00+23:59"', None),
        ('start="0001-01-01T00:00:00"', None), ("", None),
    ],
)  # fmt: skip
def test_a_test_without_a_record_has_its_start_time(times: str, started: str | None) -> None:
    keyword = '<kw name="k"><status status="FAIL" start="2026-11-20T11:00:00"/></kw>'
    test = f'<test id="t" name="n">{keyword}<status status="FAIL" {times}>bad</status></test>'
    found, problems = _scanned(_file(f'<suite id="s1" name="S">{test}</suite>'))
    assert (found, problems) == ([ScannedTest("S.n", "n", (), Status.FAIL, "bad", None, started)], [])


GOOD = _file(
    '<suite name="S">'
    + "".join(f'<test id="t" name="{name}"><status status="PASS"/></test>' for name in "abc")
    + "</suite>"
)


@pytest.mark.parametrize(
    ("content", "tests", "reason"),
    [
        (b"", 0, "the file is empty"),
        (b"<testsuite/>\n", 0, "starts with <testsuite>"),
        (GOOD.replace(b'"UTF-8"', b'"ISO-8859-1"'), 0, "ISO-8859-1"),
        (GOOD.decode().encode("utf-16"), 0, "looks like text in UTF-16"),
        (GOOD.replace(b"<suite ", b"<!-- hidden --><suite ", 1), 0, "rebot"),
        (GOOD.replace(b"<suite ", b'<!DOCTYPE r [<!ENTITY a "b"><!ENTITY c "&a;&a;">]><suite ', 1), 0, "refused"),
        (GOOD.replace(b"<suite ", b'<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/passwd">]><suite ', 1), 0, "refused"),
        (GOOD.replace(b"<suite ", b'<!DOCTYPE r SYSTEM "http://example.invalid/x.dtd"><suite ', 1), 0, "refused"),
        (GOOD.replace(b'name="b"', b'name="b\xff"'), 3, "not UTF-8"),
        (GOOD.replace(b'name="b"', b'name="b" x="\0"'), 3, "NUL"),
        (GOOD.replace(b'name="b">', b'name="b"><kw></test>', 1), 3, "test 'S.b'"),
        (GOOD[: GOOD.index(b'name="c"')], 2, "truncated"),
    ],
)
def test_damage_is_named_once_and_costs_nothing_else(content: bytes, tests: int, reason: str) -> None:
    found, problems = _scanned(content)
    assert len(found) >= tests
    (problem,) = problems
    assert reason in problem.text


@pytest.mark.parametrize(
    "test",
    [
        # Robot 3 to 6: other times, tags inside of tags, no line.
        '<test id="t" name="n"><kw name="k"><msg timestamp="20261120 10:00:00.000" level="INFO">CSIT-RESULT {}</msg>'
        '<status status="PASS" starttime="20261120 10:00:00.000" endtime="20261120 10:00:01.000"></status></kw>'
        '<tags><tag>A</tag></tags><status status="FAIL" starttime="20261120 10:00:00.000" >bad</status></test>',
        # Robot 7, written with other quotes.
        "<test name='n' id='t'><kw name='k'><msg level='INFO'>CSIT-RESULT {}</msg></kw>"
        "<tag>A</tag><status status='FAIL'>bad</status></test>",
    ],
)
def test_what_older_robots_wrote_is_read(test: str) -> None:
    found, problems = _scanned(_file(f'<suite source="/x" id="s1" name="S">{test}</suite>'))
    assert (found, problems) == ([ScannedTest("S.n", "n", (), Status.FAIL, "bad", "{}")], [])


def test_placeholders_of_suites_that_never_started_are_no_tests() -> None:
    """What Robot lists of the later suites of a run that was ended."""
    failed = (
        ("Place Of The Rows", NOT_STARTED),
        ("Place Of The Rows With Exclude", "Parent suite setup failed: no node"),
        ("64B-1c-mrr", NOT_STARTED),
    )
    rows = "".join(f'<test name="{name}"><status status="FAIL">{text}</status></test>' for name, text in failed)
    found, _ = _scanned(_file(f'<suite name="S">{rows}</suite>'))
    assert [each.name for each in found] == ["Place Of The Rows With Exclude", "64B-1c-mrr"]


def read(content: bytes) -> tuple[list[ScannedTest | Refusal], bool]:
    """What a real XML parser reads: tests, the one that was cut included, and whether the file is whole."""
    above, suites, found, test = list[str](), list[str](), list[ScannedTest | Refusal](), dict[str, Any]()
    try:
        for event, element in iterparse(io.BytesIO(content), events=("start", "end"), forbid_dtd=True):
            name, text = element.get("name", ""), element.text or ""
            if event == "start":
                if element.tag == "suite":
                    suites.append(name)
                elif element.tag == "test":
                    test = {"name": name, "long_name": ".".join([*suites, name]), "tags": (), "record": None}
                    test |= {"status": None, "message": "", "started_at": None}
                above.append(element.tag)
                continue
            above.pop()
            if element.tag == "suite":
                suites.pop()
            elif element.tag == "msg" and not test and text.startswith(REFUSED_MARKER):
                found.extend(logged_cells("x", text.removeprefix(REFUSED_MARKER)))
            elif test and element.tag == "msg" and text.startswith(RESULT_MARKER):
                test["record"] = text.removeprefix(RESULT_MARKER)
            elif test and element.tag == "tag" and above[-1] in ("test", "tags"):
                test["tags"] += (text,)
            elif test and element.tag == "status" and above[-1] == "test":
                known, started = element.get("status"), element.get("start") or element.get("starttime", "")
                test["status"] = Status(known) if known in ("PASS", "FAIL") else Status.SKIP
                test["message"] = text.strip()
                test["started_at"] = datetime.fromisoformat(started).isoformat(timespec="milliseconds")
            elif element.tag == "test":
                found.append(ScannedTest(**test))
                test = {}
    except ParseError:
        return [*found, *([ScannedTest(**test)] if test else [])], False
    return found, True
