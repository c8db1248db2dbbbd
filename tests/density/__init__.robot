*** Settings ***
Documentation       NF service density: throughput and latency as services and NFs are added to one machine.
...
...                 Choose a testbed with `-v TOPOLOGY:topologies/local.yaml`, and cells with `-v CELLS:1x1,2x1` or by
...                 tags such as `--include 2R1CANDCSCAND64B`. `./csit explain variables` lists all variables. Rows are
...                 made from the plan; the tags here only let the suites' placeholders pass Robot's own filter.
Library             resources.libraries.python.studies.density.DensityLibrary
Resource            ../../resources/libraries/robot/nodes.resource
Suite Setup         Open Testbed
Suite Teardown      Run Keywords    Save Logs Of Nodes When A Test Has Failed    AND    Close Testbed
Test Tags           1R1C    1R2C    1R3C    1R4C    1R5C    1R6C    1R7C    1R8C    1R9C    1R10C
...                 2R1C    2R2C    2R3C    2R4C    2R5C    2R6C    2R7C    2R8C    2R9C    2R10C
...                 3R1C    3R2C    3R3C    3R4C    3R5C    3R6C    3R7C    3R8C    3R9C    3R10C
...                 4R1C    4R2C    4R3C    4R4C    4R5C    4R6C    4R7C    4R8C    4R9C    4R10C
...                 5R1C    5R2C    5R3C    5R4C    5R5C    5R6C    5R7C    5R8C    5R9C    5R10C
...                 6R1C    6R2C    6R3C    6R4C    6R5C    6R6C    6R7C    6R8C    6R9C    6R10C
...                 7R1C    7R2C    7R3C    7R4C    7R5C    7R6C    7R7C    7R8C    7R9C    7R10C
...                 8R1C    8R2C    8R3C    8R4C    8R5C    8R6C    8R7C    8R8C    8R9C    8R10C
...                 9R1C    9R2C    9R3C    9R4C    9R5C    9R6C    9R7C    9R8C    9R9C    9R10C
...                 10R1C    10R2C    10R3C    10R4C    10R5C    10R6C    10R7C    10R8C    10R9C    10R10C
...                 PERFTEST    NF_DENSITY    LOCAL_ENV    SIM_ENV    LAB_ENV    HW_ENV    VM_ENV    1C    2C    4C
...                 1T1C    2T1C    2T2C    4T2C    4T4C    8T4C    NF_0.5C    NF_1C    NF_2C    SOAK
...                 64B    128B    256B    512B    1024B    1518B    9000B    IMIX
...                 IP4FWD    IP6FWD    1_FLOWS    10_FLOWS    100_FLOWS    1000_FLOWS    10000_FLOWS    100000_FLOWS
...                 1000000_FLOWS
...                 2_NODE_SINGLE_LINK_TOPO    3_NODE_SINGLE_LINK_TOPO    ETH    DOT1Q    L2BDMACLRN    L2BDMACSTAT
...                 BASE    FEATURE    DOCKER    VM    MEMIF    VHOST    VETH    TAP    RXQ_SIZE_0    TXQ_SIZE_0
...                 NF_VPPIP4    NF_TESTPMD    NF_LNXIP4    NF_LNXFW    NF_LNXNAT    NF_SIMIP4
...                 DRV_VFIO_PCI    DRV_AVF    drv_rdma_core    drv_mlx5_core    DRV_AF_XDP    DRV_AF_PACKET
...                 NIC_Intel-X710    NIC_Intel-XL710    NIC_Intel-XXV710    NIC_Intel-E810XXV    NIC_Intel-E810CQ
...                 NIC_Intel-E822CQ    NIC_Intel-E823C    NIC_Mellanox-CX556A    NIC_Mellanox-CX6DX
...                 NIC_Mellanox-CX7VEAT    NIC_Cavium-A063-50G    NIC_Cavium-A063-100G
