"""One HTML page of results that opens without a server or a network."""
