"""Open Traffic Generator (OTG, https://github.com/open-traffic-generator/models) both ways.

`driver` drives any OTG server as the generator of a testbed; `server` is an OTG server in front of our own generator.
"""
