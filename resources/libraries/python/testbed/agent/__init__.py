"""The process on a node of a lab: hosts the drivers of that node, and answers the controller's calls."""
