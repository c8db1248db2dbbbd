"""A history of simulated testbeds over many nights, with planted events whose truth is known.

For trying out what reads histories: import, trend, comparison, pages. Every figure comes from a search or a trial on a
simulated system, planned, judged and recorded as a test of the suites is; only Robot's own run is left out, so that ten
thousand tests take minutes. `python -m csit_utils.bench.nights FOLDER` makes one.
"""
