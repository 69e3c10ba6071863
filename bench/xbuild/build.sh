# What runs in the build image, in the mounted source; the environment has TRIPLE, RUSTC_OPTIONS, PACKAGES and MEMBERS
# (-p NAME ...), and SOURCE_DIGEST.
set -eu

# Root's files would be in the way of whoever started this. In the container, the mounted directory's owner is them,
# whatever the engine maps users to.
trap 'chown -R "$(stat -c %u:%g /target)" /target "$CARGO_HOME" || true' EXIT

# Alpine's images of Rust leave out the C library's files to link with; other images have to bring their own.
if command -v apk > /dev/null && ! apk info -e musl-dev > /dev/null; then
    apk add --no-cache --quiet musl-dev
fi

out=/target/$TRIPLE/release
mkdir -p "$out"
rustc $RUSTC_OPTIONS --target "$TRIPLE" -o "$out/relay-forwarder" /forwarder/relay_forwarder.rs

# Cargo tells by time stamps whether a source changed: another one that is older would count as built. What it depends
# on is kept.
if [ "$(cat "$out/source" 2> /dev/null)" != "$SOURCE_DIGEST" ]; then
    cargo clean --quiet --release --locked --target "$TRIPLE" $MEMBERS
    echo "$SOURCE_DIGEST" > "$out/source"
fi
cargo build --release --locked --target "$TRIPLE" $PACKAGES
