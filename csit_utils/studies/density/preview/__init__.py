"""The preview of a matrix (`./csit plan`): what fits and how long it takes, on a terminal and as a page."""
