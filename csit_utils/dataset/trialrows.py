"""Rows of trials: one per trial, and one per flow of a trial. Rates are as in `rows`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TrialRow:
    """One trial."""

    anchor: str
    test_name: str
    trial: int
    """Counts from 1 in the order of the test."""
    purpose: str
    started_at: str
    intended_pps: float
    offered_pps: float
    forwarded_pps: float
    sent: int
    received: int
    loss_ratio: float | None
    duration_s: float
    offered_duration_s: float
    total_duration_s: float
    aborted: bool
    """Ended early because its loss had decided it; counts are of the packets sent."""
    generator_limited: bool
    note: str | None


@dataclass(frozen=True)
class FlowRow:
    """Packets of one instance in one direction in one trial."""

    anchor: str
    test_name: str
    trial: int
    purpose: str
    intended_pps: float
    instance: int
    direction: str
    sent: int
    received: int
