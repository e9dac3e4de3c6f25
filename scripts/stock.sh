#!/bin/sh
# Runs a program of llama.cpp's own release, the one that Pleat is built and compared against:
#
#   scripts/stock.sh llama-bench -m model.gguf
#   scripts/stock.sh --list
#
# From .deps, where that is what Pleat builds against, else the system's. The working directory stays
# the caller's; so do arguments, output and exit status.
set -eu

fail() { printf 'stock.sh: %s\n' "$*" >&2; exit 127; }

top=$(cd "$(dirname "$0")/.." && pwd)
root=$top/.deps/root
[ $# -gt 0 ] || fail "which program? scripts/stock.sh llama-bench ..., or --list"
tool=$1
shift
case $tool in
    --list) ;;
    llama-*) case $tool in */*) fail "$tool: a program's name has no directory" ;; esac ;;
    *) fail "$tool: the programs are called llama-...; --list shows them" ;;
esac

if [ ! -d "$root" ]; then
    if [ "$tool" = --list ]; then
        bench=$(command -v llama-bench) || fail "no programs of llama.cpp are installed"
        cd "$(dirname "$bench")" && exec ls -1d llama-*
    fi
    command -v "$tool" >/dev/null || fail "$tool is not installed (package llama.cpp or its tools)"
    exec "$tool" "$@"
fi

if [ "$tool" = --list ]; then
    cd "$root/usr/bin" && exec ls -1d llama-*
fi
[ -x "$root/usr/bin/$tool" ] || fail "$tool is not among the programs in .deps; --list shows them"

lib=
for loader in "$root"/usr/lib/*/ld-linux*.so.*; do
    if [ -e "$loader" ]; then lib=$(dirname "$loader"); break; fi
done
[ -n "$lib" ] || fail "no dynamic loader in .deps; remove it and run make deps"

# ggml looks for its backends in a directory fixed when it was built, then beside the running program,
# then in the working directory, and takes the best variant it finds. The running program is the
# loader, so a second name for it among the backends is what lets them be found; asking for one variant
# by name would mean choosing it here.
for backends in "$lib"/ggml/backends*; do
    if [ -d "$backends" ]; then
        beside=$backends/${loader##*/}
        if [ ! -e "$beside" ]; then
            ln "$loader" "$beside" 2>/dev/null || [ -e "$beside" ] ||
                { cp "$loader" "$beside.$$" && mv "$beside.$$" "$beside"; } ||
                fail "cannot place the loader at $beside"
        fi
        loader=$beside
        break
    fi
done
# A ggml of the system's own would be searched first and might win.
system=${lib#"$root"}/ggml/$(basename "$(dirname "$loader")")
[ ! -d "$system" ] || printf 'stock.sh: %s may be used instead of .deps; see the "loaded CPU backend" line\n' "$system" >&2

exec "$loader" --library-path "$lib:$lib/llama" "$root/usr/bin/$tool" "$@"
