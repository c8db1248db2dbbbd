*** Settings ***
Documentation       Keywords for nodes, against real SSH servers. Run by test_robot_nodes.py.

Resource            ../../../resources/libraries/robot/nodes.resource

Suite Teardown      Save Logs Of Nodes When A Test Has Failed


*** Test Cases ***
Nodes Tell Who They Are
    [Documentation]    Each alias leads to the node of that name.
    ${nodes} =    Open Connections To Nodes
    FOR    ${node}    IN    @{nodes}
        ${said} =    Run On Node    ${node}    hostname
        Should Be Equal    ${said}    ${node.lower()}
    END
    [Teardown]    Close Connections To Nodes

Facts Are Logged
    [Documentation]    Also where there is no lab.
    Log Facts Of Nodes

A Test Fails
    [Documentation]    For the suite teardown.
    Fail    so that logs are saved
