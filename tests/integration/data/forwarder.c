/* A user-space forwarder between two interfaces: frames addressed to one go to the next hop of the other. */
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const unsigned work_ns = 0; /* CPU time that the checksum of a packet takes at least */

struct side {
	int fd;
	unsigned char own[6], hop[6];
};

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void next_hop(const char *name, unsigned char *mac)
{
	char line[256], text[32], device[64];
	FILE *file = fopen("/proc/net/arp", "r");
	while (file && fgets(line, sizeof line, file))
		if (sscanf(line, "%*s %*s %*s %31s %*s %63s", text, device) == 2 && !strcmp(device, name) &&
		    sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", mac, mac + 1, mac + 2, mac + 3, mac + 4, mac + 5) == 6)
			return;
	fail(name);
}

static struct side opened(const char *name)
{
	struct side made = {.fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(ETH_P_IP))};
	struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP), .sll_ifindex = if_nametoindex(name)};
	struct ifreq request = {0};
	strncpy(request.ifr_name, name, IFNAMSIZ - 1);
	if (made.fd < 0 || bind(made.fd, (struct sockaddr *)&to, sizeof to) || ioctl(made.fd, SIOCGIFHWADDR, &request))
		fail(name);
	memcpy(made.own, request.ifr_hwaddr.sa_data, 6);
	next_hop(name, made.hop);
	return made;
}

static int64_t cpu_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void checksum(const unsigned char *frame, int length)
{
	volatile uint32_t sum = 0;
	int64_t begin = work_ns ? cpu_ns() : 0;
	while (work_ns && cpu_ns() - begin < work_ns)
		for (int i = 0; i < length; i++)
			sum += frame[i];
}

static void forward(const struct side *from, const struct side *to)
{
	unsigned char frame[2048];
	for (int count = 0; count < 64; count++) {
		int length = recv(from->fd, frame, sizeof frame, 0);
		if (length < 14)
			return;
		if (memcmp(frame, from->own, 6))
			continue;
		checksum(frame, length);
		memcpy(frame, to->hop, 6);
		memcpy(frame + 6, to->own, 6);
		send(to->fd, frame, length, 0);
	}
}

int main(int argc, char **argv)
{
	FILE *file = fopen("/proc/sys/net/ipv4/ip_forward", "w");
	if (argc != 3 || !file || fputs("0", file) < 0 || fclose(file))
		fail("ip_forward");
	struct side left = opened(argv[1]), right = opened(argv[2]);
	struct pollfd both[] = {{.fd = left.fd, .events = POLLIN}, {.fd = right.fd, .events = POLLIN}};
	for (;;) {
		poll(both, 2, -1);
		forward(&left, &right);
		forward(&right, &left);
	}
}
