"""Everything a run needs: Python and Robot libraries, templates, traffic profiles."""
