"""How to read figures of sweeps, profiles and chains."""

from csit_utils.report.explanations import Explanation

EXPLANATIONS = (
    Explanation(
        "input-rate",
        "Input rate",
        "What was really sent into the service, one way; the abscissa of every profile.",
        "Gbit/s, L2 bits with FCS; also packets per second. Traffic goes both ways, the same in each.",
        "As the generator counted it, and where it can be read once more from the network interface of the sender. A "
        "load whose input rate is off what was asked by more than the tolerance (5 % unless asked otherwise) is "
        "flagged; where the two counts disagree the load is left out of the profile.",
        "It is not the rate that was asked for, nor the sum of both ways. In bits per second a service does better "
        "with large packets; what a packet costs shows in packets per second.",
    ),
    Explanation(
        "sweep-delay",
        "One-way delay of a sweep",
        "The mean time of a packet from the sender through the service to the receiver, in a second or over a load.",
        "Milliseconds, one way.",
        "By probe frames on top of the load, or as half of the round trip where the generator measures that.",
        "It is a mean: a percentile of the density tests says more about the worst packets. In overload it is the "
        "depth of full queues, and says nothing about the service when it is not overloaded. Half of a round trip is "
        "one way only where both ways are alike.",
    ),
    Explanation(
        "vcpu-percent",
        "CPU percent of a vCPU",
        "For how much of the time the data threads of a VNF ran.",
        "Percent of one vCPU: 250 % are two and a half vCPUs.",
        "CPU time of every data thread before and after each load or second, divided by the time between. “Has work” "
        "adds the time in which a thread could have run and another had the CPU.",
        "VNFs that share CPUs never reach 100 %: look at the time they have work. A data thread that polls runs all "
        "the time, whatever the load.",
    ),
    Explanation(
        "saturation",
        "Saturation break-point",
        "The lowest measured input rate at which the CPUs of a VNF are at their maximum; profiles have one function "
        "below it and another from there on.",
        "Gbit/s, one way, L2.",
        "From the mean CPU of each load: all vCPUs of a VNF are used, or it uses no more however much is offered, or "
        "has work all of the time on CPUs it shares. The first VNF to get there counts (Troia et al.).",
        "It is one of the measured loads, so it is exact to one step of the sweep. No break-point means that no load "
        "saturated the CPUs, not that the service has no limit.",
    ),
    Explanation(
        "profile-error",
        "Errors of a profile",
        "How far the fitted functions are from what was measured.",
        "Standard error in the unit of the metric; relative error in percent.",
        "Standard error: square root of the sum of squared residuals over the degrees of freedom. Relative error: mean "
        "of |fitted - measured| / |measured| over the points that are not zero. Of functions that are as good as each "
        "other the simplest is taken.",
        "A function is worth something between its first and its last point; beyond them it is a guess. A small error "
        "of few points is no proof of the form.",
    ),
    Explanation(
        "prediction-error",
        "Error of a prediction",
        "How far a chain is from what its VNFs alone let expect.",
        "Percent of the measured value; for loss percentage points.",
        "Mean absolute error over all loads of the chain. By the hungriest VNF: throughput and loss of the VNF that "
        "saturates first. With shared CPUs: VNFs on the same CPUs count as one whose time per packet is the sum of "
        "theirs. Delay: that of the path without VNFs, and of each VNF what it alone takes longer than the path.",
        "A few loads near saturation may make most of it: look at the plot. Where the path was not measured, the "
        "delay is the plain sum, which has generator, vSwitch and links in it once for each VNF.",
    ),
)
