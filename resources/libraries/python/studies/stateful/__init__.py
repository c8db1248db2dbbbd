"""The study of stateful density: connection rates and tables of NATs and firewalls, after RFC 9693."""
