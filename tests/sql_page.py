"""SQL statements of docs/how-to/query-a-dataset.md."""

import re

from resources.libraries.python.paths import PROJECT

_PAGE = (PROJECT / "docs" / "how-to" / "query-a-dataset.md").read_text(encoding="utf-8")
QUESTIONS = dict(re.findall(r"\n\n([A-Z][^\n]*):\n\n```sql\n(.*?)```", _PAGE, re.DOTALL))
"""Statements by the sentence before them."""
assert len(QUESTIONS) == 10, "ten questions"
