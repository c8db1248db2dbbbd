#!/bin/sh
# Compiles the XDP programs of the built-in generator: bpf.sh [OUTPUT]. The default output is the committed object.
# Needs the Debian packages clang, libbpf-dev and linux-libc-dev. Users need none of them: they load the object.
set -eu
output=$(realpath "${1:-$(dirname "$0")/../libraries/python/drivers/generators/xdp/live_frames.bpf.o}")
cd "$(dirname "$0")/../libraries/python/drivers/generators/xdp" # the object contains the name of its source as given
source=live_frames.bpf.c
digest=$(sha256sum "$source" | cut -d ' ' -f 1)
exec clang -target bpfel -mcpu=v3 -O2 -Wall -Wextra -Wno-unused-parameter -Werror -fno-addrsig \
    -I"/usr/include/$(uname -m)-linux-gnu" "-DSOURCE_SHA256=\"$digest\"" -c "$source" -o "$output"
