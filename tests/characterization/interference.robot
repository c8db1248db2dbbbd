*** Settings ***
Documentation     Interference of network functions on one server: each is measured alone, and beside every other one
...               and a second instance of itself, each with its own traffic.
...
...               They are described in `specs/interference/`. Choose the repetitions with `-v REPETITIONS:10`, the
...               length of a measurement with `-v TRIAL_DURATION:2` (seconds), the load offered to each with
...               `-v INTERFERENCE_LOAD:50000` (packets per second, one way), the frame with `-v FRAME:512B`, and
...               `-v GUARANTEE:yes` to measure all once more with an equal share of the network guaranteed to each.
...
...               Other packet sizes and loads (tag SWEEP), a tunnel (tag TUNNEL) and three at once (tag THREE) are
...               skipped because they take longer; `-v MORE:yes` measures them too.

Resource          ../../resources/libraries/robot/interference.resource

Suite Setup       Open Testbed
Suite Teardown    Close Testbed
Test Teardown     Close Interference    ${TEST STATUS}    ${TEST MESSAGE}
Test Template     Interference Should Be Measured

Test Tags         INTERFERENCE


*** Variables ***
${MORE}            no
&{UNLESS ASKED}    no=robot:skip    yes=MORE


*** Test Cases ***                    SPECIFICATION               FRAME       LOAD
Network Functions Side By Side
    [Documentation]    One of each type of packet processing: all ordered pairs.
    [Tags]    PAIRS
    interference/pairs.yaml

Side By Side Over Packet Sizes And Loads
    [Documentation]    High cost per byte, and high cost per packet; loads below and above the capacity of each alone.
    [Tags]    SWEEP    ${UNLESS ASKED}[${MORE}]
    interference/sweep.yaml

Side By Side With A Tunnel
    [Documentation]    A tunnel reads and writes the whole packet.
    [Tags]    TUNNEL    ${UNLESS ASKED}[${MORE}]
    interference/tunnel.yaml

Three Side By Side
    [Documentation]    Compare groups of three with the prediction from pairs.
    [Tags]    THREE    ${UNLESS ASKED}[${MORE}]
    interference/three.yaml
