"""How a result record is found inside a Robot log."""

RESULT_MARKER = "CSIT-RESULT "
"""A log message that starts with this carries one result record as JSON, so that `output.xml` alone makes a report."""
NOTHING_FITS = "No Cell Can Run"
"""Name of the test, without a record, that takes the place of all rows of a suite where none can run."""
NOTHING_SELECTED = "No Row Is Selected"
"""Name of the test, without a record, that fails where a run has no other."""
