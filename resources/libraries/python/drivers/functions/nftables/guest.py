"""Rules of nftables in the kernel of a guest."""

from resources.libraries.python.drivers.functions.nftables import program
from resources.libraries.python.drivers.functions.nftables.rulesets import ruleset_of
from resources.libraries.python.drivers.functions.vm_application.applications import Application
from resources.libraries.python.model.nodes import DutNode
from resources.libraries.python.model.plan import NfPlan


def application(function: NfPlan, node: DutNode, _: int) -> Application:
    """Return the rules of an NF."""
    ruleset = ruleset_of(function.kind.in_guest or function.kind, node)
    return Application(ruleset.about, program.version, rules=ruleset.text([function]), counter=ruleset.counter)
