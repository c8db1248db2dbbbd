# Prints the packets that a process's packet sockets got, and those that found no room, since the last call: reading
# sets the kernel's counters to zero (packet(7), PACKET_STATISTICS). The process's sockets are taken by pidfd_getfd(2).
# It runs in guests, which have the interpreter and none of its modules.
my ($pid_of_program) = @ARGV;
my ($pidfd_open, $pidfd_getfd, $sol_packet, $packet_statistics) = (434, 438, 263, 6);

my %is_packet_socket;
open(my $table, '<', '/proc/net/packet') or die "/proc/net/packet: $!\n";
while (my $line = <$table>) { $is_packet_socket{$1} = 1 if $line =~ /(\d+)\s*$/; }

my $process = syscall($pidfd_open, 0 + $pid_of_program, 0);
die "the program has ended\n" if $process < 0;
opendir(my $folder, "/proc/$pid_of_program/fd") or die "the program has ended\n";
my ($sockets, $all, $lost) = (0, 0, 0);
for my $name (readdir($folder)) {
    my $target = readlink("/proc/$pid_of_program/fd/$name");
    next unless defined($target) && $target =~ /^socket:\[(\d+)\]$/ && $is_packet_socket{$1};
    my $own = syscall($pidfd_getfd, $process, 0 + $name, 0);
    die "pidfd_getfd: $!\n" if $own < 0;
    open(my $socket, '+<&=', $own) or die "socket: $!\n";
    my $counts = getsockopt($socket, $sol_packet, $packet_statistics) or die "PACKET_STATISTICS: $!\n";
    my ($packets, $dropped) = unpack('LL', $counts);
    ($sockets, $all, $lost) = ($sockets + 1, $all + $packets, $lost + $dropped);
    close($socket);
}
die "the program has no packet socket\n" unless $sockets;
print "$all $lost\n";
