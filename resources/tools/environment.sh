# Sourced by csit, which has set `root` and `say`: the environment of pinned Python packages, `venv`, is found or made here.
# It is CSIT_VENV, else .venv, else, where that is not ours to write, a folder of this checkout in the user's cache.
pins="$root $(cat "$root/requirements.txt" "$root/requirements-dev.txt" "$root/constraints.txt" | cksum)"
packages() { "$root/resources/tools/packages.sh" "$@"; }
find_python() {
    for name in python3 python3.14 python3.13 python3.12 python3.11; do
        "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$name" && return
    done
    say 'needs Python 3.11 or newer; none found as python3 or python3.11 to python3.14' && return 1
}
stamp() { echo "$pins" && case $1 in *-spark | *-redfish) cksum <"$root/$1.txt" ;; esac; } # have pins of their own
ready() { [ -x "$venv/bin/python" ] && [ "$(cat "$venv/$1.ready" 2>/dev/null)" = "$(stamp "$1")" ]; }
ours() { # whether this user made $venv for this path, or can make it: what others made is never deleted
    mkdir -p "$venv" 2>/dev/null && [ -O "$venv" ] && [ -w "$venv" ] || return 1
    case $(cat "$venv"/lib/python3*/site-packages/csit.pth 2>/dev/null || ls -A "$venv") in
    "$root" | '') ;;
    *) return 1 ;;
    esac
}
choose() { # NAME: set $venv to the environment that has the packages of NAME.txt, or gets them
    venv=${CSIT_VENV:-$root/.venv}
    case $venv in /*) ;; *) venv=$PWD/$venv ;; esac
    venv=$(readlink -f -- "$venv" || echo "$venv")
    if ready "$1" || ours; then return; fi
    cache=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
    if [ -z "${CSIT_VENV:-}" ] && [ -n "$cache" ]; then
        default=$venv checkout=$(printf %s "$root" | cksum)
        venv=$cache/csit/venv-${checkout%% *}
        if ready "$1"; then return; fi
        if ours; then say "$default cannot be written, or another path or user made it: using $venv" && return; fi
    fi
    say "no packages can be installed in $venv, which cannot be written, or is not of this checkout and user; name another folder: CSIT_VENV=FOLDER ./csit"
    exit 1
}
unfinished() { say "$venv could not be finished, for the reason above; the next start of csit repeats it" && exit 1; }
setup() ( # NAME: install NAME.txt. The stamp is written last, so that an interrupted installation is repeated.
    if command -v flock >/dev/null; then flock 9; fi # a second csit waits here for the first
    ready "$1" && exit
    if ! ready requirements; then
        python=$(find_python); packages venv "$python"
        "$python" -m venv --clear --without-pip "$venv" || unfinished
        for site in "$venv"/lib/python3*/site-packages; do echo "$root" >"$site/csit.pth"; done # says whose it is
        "$venv/bin/python" -m ensurepip >/dev/null || unfinished
    fi
    say "installing the Python packages of $1.txt into $venv; once, for about a minute"
    "$venv/bin/python" -W ignore -m pip install -q --disable-pip-version-check --no-input --no-compile -r "$root/$1.txt" || unfinished
    for name in requirements "$1"; do stamp "$name" >"$venv/$name.ready"; done
) 9<"$root/requirements.txt"
