"""Planning: from a topology and a cell to a plan, or to the reason why it does not fit. Pure."""
