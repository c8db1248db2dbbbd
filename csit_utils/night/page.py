"""A night in sentences, and its page: the plan, how each test ended, and what is still open."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from csit_utils.analysis.night import NightLine, NightPlan, NightReason, Omission, OmittedTest
from csit_utils.night.session import NightChoices, TestOfNight
from csit_utils.report.html import html_templates, style
from csit_utils.report.units import percent, seconds

_FEW_DAYS = 2.0


def reason_of(line: NightLine) -> str:
    """Why a test is measured."""
    known = line.known
    match line.reason:
        case NightReason.SUSPECTED:
            of = f", {line.repeat} of {known.missing} figures that a step lacks"
            return f"suspected: {known.suspect} {percent(known.suspected, signed=True)}{of}"
        case NightReason.UNSEEN:
            return "unseen: " + (
                "never measured" if known.last_seen is None else f"last measured {_days(line.score)} ago"
            )
        case _:
            metric = known.metric or "level"
            if line.before is None:
                return f"uncertain: one figure gives no interval of {metric}"
            after = f", about ±{percent(line.after)} then" if line.after is not None else ""
            return f"uncertain: {metric} ±{percent(line.before)}{after}"


def why_left_out(left: OmittedTest) -> str:
    """Why a test is not measured, or less often than wanted."""
    match left.why:
        case Omission.UNFIT:
            return f"{'open' if left.test.tried else 'does not fit'}: {left.test.why_not}"
        case Omission.NO_DURATION:
            return "its duration is not known: it has no preview, and no stored result; measure it once by ./csit robot"
        case Omission.SETTLED:
            known = left.known
            width = known.half_width(known.count)
            return "settled: " + (f"{known.metric} ±{percent(width)}" if width is not None else "measured enough")
    of = f"{left.planned} of {left.wanted} measurements are planned" if left.planned else "not planned"
    return f"no time: {of}; one takes {seconds(left.test.seconds)}"


def summary(plan: NightPlan) -> str:
    """The plan in one sentence."""
    tests = len({line.test.key for line in plan.lines})
    counts = {reason: sum(line.reason is reason for line in plan.lines) for reason in NightReason}
    listed = ", ".join(f"{count} {reason}" for reason, count in counts.items() if count) or "none"
    opening = f", {seconds(plan.opening_s)} of it for opening the testbed" if plan.opening_s else ""
    count, runs = _many(len(plan.lines), "measurement"), _many(len(plan.runs), "run")
    return (
        f"{count} of {_many(tests, 'test')} ({listed}) in {runs}: "
        f"about {seconds(plan.seconds)} of {seconds(plan.budget_s)}{opening}"
    )


def _days(days: float) -> str:
    return f"{days * 24:.0f} hours" if days < _FEW_DAYS else f"{days:.0f} days"


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def render_night(
    choices: NightChoices,
    rows: Iterable[TestOfNight],
    ending: str,
    still_open: Sequence[tuple[str, str]],
    left_out: Sequence[tuple[str, str]],
    *,
    has_report: bool,
) -> str:
    """Return the page of a night that has ended; one file that needs no network and no script."""
    return html_templates().get_template("night.html.j2").render(
        topology=Path(choices.topology).name,
        choices=choices,
        began=choices.began[:16].replace("T", " "),
        ending=ending,
        rows=tuple(rows),
        duration=seconds,
        still_open=still_open,
        left_out=left_out,
        has_report=has_report,
        style=style(),
    )  # fmt: skip
