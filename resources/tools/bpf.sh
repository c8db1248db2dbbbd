#!/bin/sh
# Compiles the XDP programs of the built-in generator: bpf.sh [FOLDER]. By default the objects are the committed ones.
# Needs the Debian packages clang, llvm, libbpf-dev and linux-libc-dev. Users need none of them: they load the objects.
set -eu
folder=$(realpath "${1:-$(dirname "$0")/../libraries/python/drivers/generators/xdp}")
cd "$(dirname "$0")/../libraries/python/drivers/generators/xdp" # an object contains the name of its source as given
for source in *.bpf.c; do
    digest=$(sha256sum "$source" | cut -d ' ' -f 1)
    object=$folder/${source%.c}.o
    debug=
    if grep -q 'SEC("\.maps")' "$source"; then # libbpf reads the types of maps from BTF
        debug="-g -fdebug-compilation-dir=."
    fi
    # shellcheck disable=SC2086 # two options
    clang -target bpfel -mcpu=v3 -O2 -Wall -Wextra -Wno-unused-parameter -Werror -fno-addrsig $debug \
        -I"/usr/include/$(uname -m)-linux-gnu" "-DSOURCE_SHA256=\"$digest\"" -c "$source" -o "$object"
    if [ "$debug" ]; then
        llvm-objcopy --strip-debug --remove-section=.BTF.ext --remove-section=.rel.BTF.ext "$object"
    fi
done
