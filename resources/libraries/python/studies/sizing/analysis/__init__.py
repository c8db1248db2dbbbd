"""Tables of a sizing. Pure."""
