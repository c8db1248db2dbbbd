"""How a result record is found inside a Robot log."""

RESULT_MARKER = "CSIT-RESULT "
"""A log message that starts with this carries one result record as JSON, so that `output.xml` alone makes a report."""
