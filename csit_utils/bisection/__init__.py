"""Bisection of the revisions of a component: specification, revisions, journal and loop."""
