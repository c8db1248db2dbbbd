"""What an event costs the instances, in sentences."""

from collections import defaultdict
from collections.abc import Iterator

from resources.libraries.python.studies.outage.model.record import Effect, Outage
from resources.libraries.python.studies.outage.model.spec import CONTROL


def headline(found: Outage) -> str | None:
    """Return the result in one sentence."""
    if not found.trials:
        return None
    others = [effect for effect in found.effects if not effect.is_target and effect.event != CONTROL]
    hurt = [effect for effect in others if effect.is_significant]
    measured = "" if len(found.trials) == found.asked else f"{found.coverage} trials were made; "
    if not hurt:
        return f"{measured}no event at one instance costs another one more packets than chance does"
    worst = max(hurt, key=lambda effect: effect.excess.mean if effect.excess else 0.0)
    assert worst.excess is not None  # noqa: S101 - significant
    return (
        f"{measured}{worst.event} costs instance {worst.instance} {worst.excess.mean:.0f} packets that it does not "
        f"lose without an event"
    )


def sentences(found: Outage) -> Iterator[str]:
    """A sentence for each event: what it cost the instance hit, and the others, or why it was refused."""
    rows: dict[str, list[Effect]] = defaultdict(list)
    for effect in found.effects:
        rows[effect.event].append(effect)
    for event, row in rows.items():
        targets = [effect for effect in row if effect.is_target]
        others = [effect for effect in row if not effect.is_target]
        parts = []
        if targets:
            worst = max(targets, key=lambda effect: effect.outage_s.mean)
            whom = "all instances" if not others else f"instance {worst.instance}"
            parts.append(f"{whom}: {_lost(worst)}, {_first(worst)}")
        if others:
            worst = max(others, key=lambda effect: effect.lost.mean)
            sure = ", more than without an event" if worst.is_significant else ""
            if worst.control is not None:
                sure += f", {worst.control.mean:,.0f} without an event"
            what = "any instance" if not targets else "the other instances"
            parts.append(f"{what}: {_lost(worst)} at most (instance {worst.instance}){sure}")
        yield f"{event}: {'; '.join(parts)}"
    yield from (f"{event}: {reason}" for event, reason in found.refused.items())


def _lost(effect: Effect) -> str:
    half = effect.lost.high - effect.lost.mean if effect.lost.high is not None else None
    spread = "" if half is None else f" ± {half:,.0f}"
    return f"{effect.lost.mean:,.0f}{spread} packets lost ({effect.outage_s.mean * 1000:.1f} ms)"


def _first(effect: Effect) -> str:
    if effect.first_packet_s is not None:
        return f"first packet after {effect.first_packet_s.mean * 1000:.1f} ms"
    return "no packet afterwards" if effect.recovered < effect.lost.samples else "never interrupted"
