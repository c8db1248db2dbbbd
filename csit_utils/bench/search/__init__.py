"""Time, evidence and errors of searches, against MLRsearch in virtual time."""
