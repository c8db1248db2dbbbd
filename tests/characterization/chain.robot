*** Settings ***
Documentation       Chains of network functions, compared with the prediction from their parts alone.
...
...                 The path without any network function and the parts are measured first, with the same frame. A
...                 chain is a router and a firewall in a row, or two branches with a firewall each between two routers:
...                 one splits the traffic, the other merges it.
Resource            ../../resources/libraries/robot/characterization.resource
Suite Setup         Open Testbed
Suite Teardown      Close Testbed
Test Teardown       Close Test    ${TEST STATUS}    ${TEST MESSAGE}
Test Tags           CHAIN


*** Test Cases ***
Path Alone
    [Documentation]    The baseline path: generator, vSwitch, and a cable in place of the NFs.
    [Template]    Service Should Be Profiled
    path    none    1c    ${FRAME}

Router Alone
    [Documentation]    A part.
    [Template]    Service Should Be Profiled
    router    ${ROUTER}    1c    ${FRAME}

Firewall Alone
    [Documentation]    A part.
    [Template]    Service Should Be Profiled
    firewall    ${FIREWALL}    1c    ${FRAME}

Router And Firewall
    [Documentation]    A linear chain.
    [Template]    Chain Should Be Predicted
    router-firewall    ${ROUTER}+${FIREWALL}    ${FRAME}    router+firewall

Two Branches Between Two Routers
    [Documentation]    A split and merge.
    [Template]    Branches Should Be Predicted
    split-merge    ${ROUTER}+${FIREWALL}+${ROUTER}    ${FRAME}    2    1+3    router+firewall+router
