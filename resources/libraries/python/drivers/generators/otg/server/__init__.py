"""An OTG server in front of the built-in generator: the part of the API that this generator can do, over HTTP."""
