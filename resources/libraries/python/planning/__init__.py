"""Pure: from a topology and a cell to a Plan, or to a reason why not."""
