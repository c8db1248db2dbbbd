"""The page of a night: the plan before it, and afterwards how each test ended and what is still open."""

from collections.abc import Sequence
from pathlib import Path

from csit_utils.night.state import NightClock, NightState
from csit_utils.report.html import html_templates, own_file
from csit_utils.report.units import seconds


def render_night(
    state: NightState, clock: NightClock | None = None, ending: str = "", still_open: Sequence[tuple[str, str]] = ()
) -> str:
    """Return the page; one file that needs no network and no script.

    Args:
        state: The plan.
        clock: Tests that have ended; None before the night.
        ending: How the night ended, in a sentence.
        still_open: Tests that another night would measure, with the reason.
    """
    rows = []
    for run in state.runs:
        for test in run.tests:
            ended = clock.status_of(run.folder, test.name) if clock is not None else None
            rows.append({
                "run": run.folder,
                "title": test.title,
                "why": test.why,
                "seconds": seconds(test.seconds),
                "status": ended.status.lower() if ended is not None else "",
                "message": ended.message if ended is not None else "",
            })  # fmt: skip
    return html_templates().get_template("night.html.j2").render(
        topology=Path(state.choices.topology).name,
        simulated=state.choices.simulated,
        began=state.choices.began[:16].replace("T", " "),
        hours=f"{state.choices.hours:g}",
        summary=state.summary,
        ending=ending,
        rows=rows,
        left_out=state.left_out,
        still_open=still_open,
        over=clock is not None,
        style=own_file("style/base.css"),
    )  # fmt: skip
