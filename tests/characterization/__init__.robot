*** Settings ***
Documentation       Performance of network functions, chains and services under growing load.
...
...                 Choose a testbed with `-v TOPOLOGY:topologies/local.yaml`, loads with
...                 `-v SWEEP_RATES:10000-200000/10000` (packets per second of each flow, one way) (by default
...                 from a short test), their duration with `-v SWEEP_DURATION:30` (seconds), the frame
...                 with `-v FRAME:512B`, concurrent flows with `-v FLOWS:4`, another generator with
...                 `-v GENERATOR:ditg`, the protocol with `-v PROTOCOL:UDP`, other network functions with
...                 `-v ROUTER:vpp`, earlier results with profiles of parts with `-v PROFILES:results/20260101-120000`.
...                 `-v SWEEP_WIDTH:0.5` narrows the interval of the break-point by further loads (percent, default 2).
...                 `-v STOP_LOSS:0.5` ends a sweep after three loads in a row with a loss of more than half.
Resource            ../../resources/libraries/robot/nodes.resource
Suite Teardown      Save Logs Of Nodes When A Test Has Failed
Test Tags           CHARACTERIZATION
