"""From trials and counters to findings: limits, losses, stability, and the verdict."""
