"""Findings from facts of nodes. Pure: facts and topology in, findings out."""
