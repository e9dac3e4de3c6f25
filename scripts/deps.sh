#!/bin/sh
# Finds or fetches what Pleat builds against. Uses the system's packages where they are new enough;
# on Debian and its like, unpacks the packages of the testing suite into .deps/root otherwise. Never
# needs root, never asks, never changes the system, and does nothing when nothing is to do.
#
#   scripts/deps.sh            make the dependencies available
#   scripts/deps.sh --private  do not look at the system's packages
set -eu

cd "$(dirname "$0")/.."
top=$PWD
deps=$top/.deps
packages="libggml-dev libllama-dev llama.cpp-tools llama.cpp-tools-extra libcli11-dev libfmt-dev nlohmann-json3-dev
libminja-dev libcpp-httplib-dev libedit-dev libyaml-cpp-dev libgtest-dev libgmock-dev"

say() { printf 'deps: %s\n' "$*"; }
fail() { printf 'deps: %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# The stamp names what it stands for; another list of packages makes it stale.
want=$(printf '%s\n' $packages | cksum | cut -d ' ' -f 1)
if [ -f "$deps/stamp" ] && [ "$(cat "$deps/stamp")" = "$want" ]; then
    exit 0
fi

id=unknown like=
[ ! -r /etc/os-release ] || { id=$(. /etc/os-release && echo "${ID:-unknown}"); like=$(. /etc/os-release && echo "${ID_LIKE:-}"); }
[ "$(uname -s)" != Darwin ] || id=macos

case " $id $like " in
    *" debian "*|*" ubuntu "*) tools="sudo apt-get install g++ cmake make" ;;
    *" arch "*) tools="sudo pacman -S --needed base-devel cmake" ;;
    *" fedora "*) tools="sudo dnf install gcc-c++ cmake make" ;;
    *" nixos "*) tools="nix-shell -p gcc cmake gnumake" ;;
    *" macos "*) tools="xcode-select --install; brew install cmake" ;;
    *) tools="your package manager" ;;
esac
have cmake || fail "no CMake found; get it with: $tools"
cxx=${CXX:-c++}
have "$cxx" || fail "no C++ compiler found ($cxx); get one with: $tools"

# One list of dependencies and versions serves the probe and the build: cmake/Dependencies.cmake.
if [ "${1:-}" != --private ]; then
    probe=$(mktemp -d)
    trap 'rm -rf "$probe"' EXIT
    if cmake -S "$top/cmake/probe" -B "$probe" >"$probe/log" 2>&1; then
        mkdir -p "$deps"
        echo "$want" >"$deps/stamp"
        say "the system's packages are new enough"
        exit 0
    fi
fi

case " $id $like " in
    *" debian "*|*" ubuntu "*) ;;
    *" arch "*) fail "the system lacks packages or they are too old; install: pacman -S --needed llama.cpp ggml cli11 fmt nlohmann-json minja cpp-httplib libedit yaml-cpp gtest" ;;
    *" fedora "*) fail "the system lacks packages or they are too old; install: dnf install llama-cpp-devel ggml-devel cli11-devel fmt-devel json-devel minja-devel cpp-httplib-devel libedit-devel yaml-cpp-devel gtest-devel gmock-devel" ;;
    *" nixos "*) fail "the system lacks packages or they are too old; use: nix-shell -p llama-cpp cli11 fmt nlohmann_json minja httplib libedit yaml-cpp gtest" ;;
    *" macos "*) fail "the system lacks packages or they are too old; install: brew install llama.cpp ggml cli11 fmt nlohmann-json cpp-httplib libedit yaml-cpp googletest" ;;
    *) fail "the system lacks ggml >= 0.27, libllama of the same release, CLI11, fmt, nlohmann-json, minja, cpp-httplib, libedit, yaml-cpp or GoogleTest; install them so that CMake finds them" ;;
esac
for tool in apt-get dpkg dpkg-deb; do have "$tool" || fail "$tool not found, so no packages can be unpacked"; done

keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$keyring" ] || fail "no Debian keyring at $keyring; get it with: sudo apt-get install debian-archive-keyring"

# The mirror that the system's own sources name. On a derivative those sources are not Debian's, so
# the mirror must be given: DEBIAN_MIRROR=... make deps
mirror=${DEBIAN_MIRROR:-}
if [ -z "$mirror" ]; then
    [ "$id" = debian ] || fail "$id is not Debian itself: name a Debian mirror with DEBIAN_MIRROR=URL, or install the packages by hand: $packages"
    mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
        awk '$3 == "main" && $2 !~ /security|updates|backports/ && $1 ~ /\/debian\/?$/ { print $1; exit }')
    [ -n "$mirror" ] || fail "the system's apt sources name no Debian mirror; give one with DEBIAN_MIRROR=URL"
fi

apt=$deps/apt
rm -rf "$deps/root.new" "$apt/state" "$apt/etc"
mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial" "$apt/etc/parts"
: >"$apt/status"
echo "deb [signed-by=$keyring] $mirror testing main" >"$apt/etc/sources.list"
cat >"$apt/etc/apt.conf" <<CONF
Dir::State "$apt/state";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
Dir::Log "$apt/log";
Dir::Etc::sourcelist "$apt/etc/sources.list";
Dir::Etc::sourceparts "$apt/etc/parts";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "$apt/etc/parts";
Acquire::Languages "none";
Acquire::Retries "3";
APT::Install-Recommends "false";
APT::Sandbox::User "";
DPkg::Post-Invoke "";
CONF
# Hooks of the system's own configuration (list caches, notifiers) would write outside .deps.
printf '%s\n' '#clear APT::Update::Post-Invoke;' '#clear APT::Update::Post-Invoke-Success;' \
    '#clear DPkg::Post-Invoke;' '#clear DPkg::Pre-Install-Pkgs;' '#clear DPkg::Pre-Invoke;' >>"$apt/etc/apt.conf"

run_apt() { APT_CONFIG=$apt/etc/apt.conf DEBIAN_FRONTEND=noninteractive "$@" </dev/null >"$apt/log.txt" 2>&1; }

say "the system's packages are missing or too old; unpacking Debian testing's into .deps (no root, some 30 MB)"
run_apt apt-get update || { tail -n 5 "$apt/log.txt" >&2; fail "could not read the testing suite's index"; }
# shellcheck disable=SC2086
run_apt apt-get -y --download-only install $packages || { tail -n 5 "$apt/log.txt" >&2; fail "could not download the packages"; }

mkdir "$deps/root.new"
for package in "$apt"/cache/archives/*.deb; do
    # The compiler keeps to its own C library's headers.
    case ${package##*/} in libc6-dev_*|libc-dev-bin_*|linux-libc-dev_*|libcrypt-dev_*) continue ;; esac
    dpkg-deb -x "$package" "$deps/root.new" || fail "could not unpack ${package##*/}"
done
rm -rf "$deps/root" "$apt"
mv "$deps/root.new" "$deps/root"
echo "$want" >"$deps/stamp"
say "ready: $(ls "$deps"/root/usr/lib/*/libllama.so.*.*.* 2>/dev/null | head -n 1 | sed 's/.*libllama.so./libllama /'), in .deps (a build belongs to this checkout)"
