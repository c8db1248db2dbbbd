*** Settings ***
Documentation     Interference of network functions on one server: each is measured alone, and beside every other one
...               and a second instance of itself, each with its own traffic.
...
...               They are described in `specs/interference/`. Choose the repetitions with `-v SET:repetitions=10`,
...               the load offered to each with `-v SET:load_pps=50000` (one way), and `-v SET:guarantee=yes` to measure
...               all once more with an equal share of the network guaranteed to each; any other key is set in the same
...               way.
...
...               Other packet sizes and loads (tag SWEEP), a tunnel (tag TUNNEL) and three at once (tag THREE) are
...               skipped because they take longer; `-v MORE:yes` measures them too.

Library           resources.libraries.python.studies.shared.StudyLibrary    interference

Suite Setup       Open Testbed
Suite Teardown    Close Testbed
Test Teardown     Close Test    ${TEST STATUS}    ${TEST MESSAGE}
Test Template     Run Study

Test Tags         INTERFERENCE


*** Variables ***
${MORE}            no
&{UNLESS ASKED}    no=robot:skip    yes=MORE


*** Test Cases ***                    SPECIFICATION
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
