"""The longest bursts of a test without a loss, in a sentence and a figure."""

from csit_utils.report.figures import Figure
from resources.libraries.python.model.result import BackToBack
from resources.libraries.python.search.back_to_back import bursts_in_words


def bursts_text(found: BackToBack | None) -> str:
    """Return the result in a sentence; empty where it was not measured."""
    if found is None:
        return ""
    return (
        f"{bursts_in_words(found).capitalize()} ({found.implied_buffer_s * 1e6:.0f} us implied); {len(found.frames)} "
        f"repetitions from {min(found.frames)} to {max(found.frames)} frames, {found.trials} bursts."
    )


def burst_figure(identity: str, title: str, found: BackToBack | None, *, simulated: bool) -> Figure | None:
    """Return the longest burst in each repetition; None where there are not several."""
    if found is None or len(found.frames) < 2:
        return None
    trace = {
        "type": "scatter",
        "mode": "markers",
        "name": "longest burst",
        "x": list(range(1, len(found.frames) + 1)),
        "y": list(found.frames),
        "meta": {"colour": 0},
    }
    layout = {
        "xaxis": {"title": {"text": "repetition"}},
        "yaxis": {"title": {"text": "frames of each flow"}, "rangemode": "tozero"},
    }
    return Figure(identity, title, simulated, (), {"": {"data": [trace], "layout": layout}})
