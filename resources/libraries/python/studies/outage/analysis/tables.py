"""Tables of a study of outages: effects, and the impact of every trial."""

from resources.libraries.python.studies.outage.model.record import Delays, Impact, MeanInterval, OutageRecord

Row = tuple[object, ...]
_MEANS = (
    "lost_packets", "no_event_packets", "excess_packets", "outage_ms", "gap_ms", "recovery_ms", "first_packet_ms",
    "delay_before_us", "delay_during_us", "delay_after_us",
)  # fmt: skip
EFFECTS = (
    "event", "instance", "is_target", "is_significant", "repetitions", "recovered",
    *(f"{name}{end}" for name in _MEANS for end in ("", "_low", "_high")), "worst_delay_us",
)  # fmt: skip
"""One line for each event and instance; `low` and `high` are the ends of the 95 % confidence interval."""
TRIALS = (
    "trial", "repetition", "event", "event_ms", "instance", "sent", "lost", "lost_before", "outage_ms", "gap_ms",
    "recovery_ms", "first_packet_ms", "delay_before_us", "worst_before_us", "delay_during_us", "worst_during_us",
    "delay_after_us", "worst_after_us", "duplicates", "clock_error_ms", "quarantined",
)  # fmt: skip
"""One line for each trial and instance."""


def outage_tables(record: OutageRecord) -> tuple[tuple[str, list[Row]], ...]:
    """Name and rows of each table, the first row with the names of the columns."""
    found = record.outage
    if found is None or not found.trials:
        return ()
    effects: list[Row] = [
        (
            each.event,
            each.instance,
            each.is_target,
            each.is_significant,
            each.lost.samples,
            each.recovered,
            *(value for packets in (each.lost, each.control, each.excess) for value in _ends(packets, 1.0)),
            *(
                value
                for time_s in (each.outage_s, each.gap_s, each.recovery_s, each.first_packet_s)
                for value in _ends(time_s, 1e3)
            ),
            *(value for delay_ns in (each.before_ns, each.during_ns, each.after_ns) for value in _ends(delay_ns, 1e-3)),
            _scaled(each.worst_ns, 1e-3),
        )
        for each in found.effects
    ]
    reasons = {each.trial: each.reason for each in found.quarantined}
    trials: list[Row] = [
        (
            trial.number,
            trial.repetition,
            trial.event,
            _scaled(trial.event_s, 1e3),
            *_impact(impact),
            _scaled(trial.clock_error_s, 1e3),
            reasons.get(trial.number),
        )
        for trial in sorted(found.trials, key=lambda trial: trial.number)
        for impact in trial.impacts
    ]
    return ("outage_effects", [EFFECTS, *effects]), ("outage_trials", [TRIALS, *trials])


def _impact(impact: Impact) -> Row:
    return (
        impact.instance,
        impact.sent,
        impact.lost,
        impact.lost_before,
        1e3 * impact.outage_s,
        1e3 * impact.gap_s,
        _scaled(impact.recovery_s, 1e3),
        _scaled(impact.first_packet_s, 1e3),
        *(value for period in (impact.before, impact.during, impact.after) for value in _delays(period)),
        impact.duplicates,
    )


def _delays(period: Delays) -> Row:
    return _scaled(period.mean_ns, 1e-3), _scaled(period.worst_ns, 1e-3)


def _ends(found: MeanInterval | None, scale: float) -> Row:
    if found is None:
        return None, None, None
    return scale * found.mean, _scaled(found.low, scale), _scaled(found.high, scale)


def _scaled(value: float | None, scale: float) -> float | None:
    return None if value is None else scale * value
