*** Settings ***
Documentation       Performance of network functions, chains and services under growing load.
...
...                 Choose a testbed with `-v TOPOLOGY:topologies/local.yaml`. `./csit explain variables` lists all
...                 variables, of which `-v SET:repetitions=10` changes a key of a specification in `specs/`.
Resource            ../../resources/libraries/robot/nodes.resource
Suite Teardown      Save Logs Of Nodes When A Test Has Failed
Test Tags           CHARACTERIZATION
