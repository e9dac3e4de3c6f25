#!/bin/sh
# scripts/install.sh <program> <prefix>: puts pleat under <prefix>/bin. A build against the private
# packages in .deps needs their loader and libraries; they go beside it, so that the checkout may go.
set -eu

program=$1
prefix=$2
root=$(cd "$(dirname "$0")/.." && pwd)/.deps/root
mkdir -p "$prefix/bin"
if [ ! -d "$root" ]; then
    install -m 755 "$program" "$prefix/bin/pleat"
    echo "installed $prefix/bin/pleat"
    exit 0
fi

lib=
for loader in "$root"/usr/lib/*/ld-linux*.so.*; do lib=$(dirname "$loader"); done
[ -n "$lib" ] || { echo "install: $root holds no dynamic loader; run make deps" >&2; exit 1; }
home=$prefix/lib/pleat
rm -rf "$home"
mkdir -p "$home"
cp -a "$lib"/*.so* "$home/"
cp -a "$lib/ggml/backends0" "$home/backends"
install -m 755 "$program" "$home/pleat"
loader=$(basename "$loader")
cat >"$prefix/bin/pleat" <<EOT
#!/bin/sh
# The program runs with the libraries that were installed with it.
home=\$(cd "\$(dirname "\$(readlink -f "\$0")")/../lib/pleat" && pwd)
PLEAT_BACKEND_DIR=\${PLEAT_BACKEND_DIR:-\$home/backends}
export PLEAT_BACKEND_DIR
exec "\$home/$loader" --inhibit-rpath "\$home/pleat" --library-path "\$home" --argv0 pleat "\$home/pleat" "\$@"
EOT
chmod 755 "$prefix/bin/pleat"
echo "installed $prefix/bin/pleat (with its libraries in $home)"
