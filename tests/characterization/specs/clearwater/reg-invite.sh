#!/bin/sh
# Clearwater is simulated: these specifications are for topologies/sim.yaml. With a script of your own they are for others, too.
echo 'Clearwater is only simulated here: use topologies/sim.yaml, or put a script of your own in place of this one' >&2
exit 1
