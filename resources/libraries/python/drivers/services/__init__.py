"""Instances of services of several components, each in a network namespace and a control group of its own."""
