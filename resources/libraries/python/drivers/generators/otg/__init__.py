"""Any server of Open Traffic Generator (OTG, https://github.com/open-traffic-generator/models) as the generator."""
