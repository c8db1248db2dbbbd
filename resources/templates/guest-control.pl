# Sends lines to a program's control socket, one after the other, and prints the answer to each: an object of JSON.
# It runs in guests, which have the interpreter and none of its modules.
my ($path, $lines) = @ARGV;
my ($af_unix, $sock_stream, $answer_s) = (1, 1, 15);
$SIG{ALRM} = sub { die "$path: no answer after $answer_s s\n" };
alarm($answer_s);
socket(my $link, $af_unix, $sock_stream, 0) or die "socket: $!\n";
connect($link, pack('S a*', $af_unix, "$path\0")) or die "$path: $!\n";
for my $line (split /\t/, $lines) {
    syswrite($link, "$line\n") or die "$path: $!\n";
    my $answer = '';
    # Older versions of Suricata leave the end of a line out: an object is whole when its braces are closed.
    until ($answer =~ /\{/ && ($answer =~ tr/{//) == ($answer =~ tr/}//)) {
        sysread($link, $answer, 65536, length($answer)) or die "$path: it ended its answer early: $answer\n";
    }
    $answer =~ s/\s+/ /g;
    print "$answer\n";
}
