#!/bin/sh
# Runs the default tier many times and prints a line for each: whether it passes every time, also on a busy machine.
#   tests/repeat.sh [RUNS [BESIDE_CPU [BESIDE_DISK]]]   of 15 runs, 5 beside two busy processes per CPU, and 2 beside a busy disk
# The outputs are in $OUT, by default in a new folder below .tox.
set -eu
runs=${1:-15} cpu=${2:-5} disk=${3:-2}
cd "$(dirname "$0")/.."
mkdir -p .tox "${OUT:=$(mktemp -d "$PWD/.tox/repeat.XXXXXX")}"
busy=$(($(nproc) * 2))
beside=
end() { # shellcheck disable=SC2086 # a list of pids
    [ -z "$beside" ] || kill $beside 2>/dev/null || :
    beside=
    rm -f "$OUT/written"
}
trap end EXIT
trap 'exit 130' INT TERM

failed=0
printf 'run\tbeside\tstatus\twall s\tCPU s\tresult\n'
for run in $(seq "$runs"); do
    what=nothing
    if [ "$run" -le "$cpu" ]; then
        what="$busy busy processes"
        for _ in $(seq "$busy"); do (while :; do :; done) & beside="$beside $!"; done
    elif [ "$run" -le $((cpu + disk)) ]; then
        what='a busy disk'
        (
            trap 'kill $!; exit' TERM
            while :; do dd if=/dev/zero of="$OUT/written" bs=1M count=256 conv=fsync 2>/dev/null & wait; done
        ) & beside=$!
    fi
    began=$(date +%s) status=0
    ./csit test >"$OUT/$run.log" 2>&1 || status=$?
    wall=$(($(date +%s) - began))
    end
    [ "$status" = 0 ] || failed=$((failed + 1))
    printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$run" "$what" "$status" "$wall" \
        "$(sed -n 's/^csit test: .* \([0-9]*\) s of CPU time$/\1/p' "$OUT/$run.log")" "$(grep ' passed, ' "$OUT/$run.log" | tail -1)"
done
printf '%s of %s passed; outputs in %s\n' $((runs - failed)) "$runs" "$OUT"
[ "$failed" = 0 ]
