"""How to read figures of sweeps, profiles and chains."""

from csit_utils.report.explanations import Explanation

EXPLANATIONS = (
    Explanation(
        "input-rate",
        "Input rate",
        "The rate actually sent into the service, one way; the x-axis of every profile.",
        "Gbit/s, L2 bits with FCS; also packets per second. Traffic goes both ways, the same in each.",
        "As the generator counted it, and where it can be read once more from the network interface of the sender. A "
        "load whose input rate is off what was asked by more than the tolerance (5 % unless asked otherwise) is "
        "flagged; where the two counts disagree the load is left out of the profile.",
        "It is neither the requested rate nor the sum of both directions. In bits per second a service appears "
        "faster with large packets; the cost of a packet shows in packets per second.",
    ),
    Explanation(
        "sweep-delay",
        "One-way delay of a sweep",
        "The mean time of a packet from the sender through the service to the receiver, in a second or over a load.",
        "Milliseconds, one way.",
        "By probe frames on top of the load, or half of the round trip if the generator measures that.",
        "It is a mean: a percentile of the density tests says more about the worst packets. In overload it "
        "reflects the depth of full queues. Half of a round trip is the one-way delay only if both directions are "
        "alike.",
    ),
    Explanation(
        "vcpu-percent",
        "CPU percent of a vCPU",
        "Share of time in which the data threads of a VNF ran.",
        "Percent of one vCPU: 250 % are two and a half vCPUs.",
        "CPU time of every data thread before and after each load or second, divided by the time between. “Has work” "
        "adds the time in which a thread was runnable and waited for its CPU.",
        "VNFs that share CPUs never reach 100 %: look at the time they have work. A data thread that polls runs all "
        "the time, whatever the load.",
    ),
    Explanation(
        "saturation",
        "Saturation break-point",
        "The lowest measured input rate at which the CPUs of a VNF are at their maximum; profiles have one function "
        "below it and another from there on.",
        "Gbit/s, one way, L2.",
        "From the mean CPU of each load: all vCPUs of a VNF are used, or its use no longer grows with the load, or it "
        "always has work on shared CPUs. The first VNF to saturate counts (Troia et al.).",
        "It is one of the measured loads, so its resolution is one step of the sweep. No break-point means that no "
        "load "
        "saturated the CPUs, not that the service has no limit.",
    ),
    Explanation(
        "profile-error",
        "Errors of a profile",
        "Deviation of the fitted functions from the measured values.",
        "Standard error in the unit of the metric; relative error in percent.",
        "Standard error: square root of the sum of squared residuals over the degrees of freedom. Relative error: mean "
        "of |fitted - measured| / |measured| over the points that are not zero. Among equally good functions the "
        "simplest is taken.",
        "A function is valid between its first and its last point; beyond them it is extrapolated. A small error of "
        "few points does not prove the form.",
    ),
    Explanation(
        "prediction-error",
        "Error of a prediction",
        "Deviation of a chain from the prediction from its VNFs alone.",
        "Percent of the measured value; for loss percentage points.",
        "Mean absolute error over all loads of the chain. By the bottleneck VNF: throughput and loss of the VNF that "
        "saturates first. With shared CPUs: VNFs on the same CPUs count as one whose time per packet is the sum of "
        "theirs. Delay: that of the path without VNFs, plus what each VNF alone adds to it.",
        "A few loads near saturation may cause most of it: look at the plot. If the path was not measured, the "
        "delay is the plain sum, which contains generator, vSwitch and links once for each VNF.",
    ),
)
