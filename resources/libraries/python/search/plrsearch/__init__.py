"""PLRsearch (draft-vpolak-bmwg-plrsearch-03)."""
