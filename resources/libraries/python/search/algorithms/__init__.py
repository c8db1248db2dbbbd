"""Search algorithms, which choose loads and judge trials: MLRsearch, PLRsearch, RFC 2544 and our own."""
