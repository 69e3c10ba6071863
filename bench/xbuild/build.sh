# What runs in the build image, with TRIPLE, RUSTC_OPTIONS and PACKAGES in its environment, in the mounted source.
set -eu

# Root's files would be in the way of whoever started this. In the container, the mounted directory's owner is them,
# whatever the engine maps users to.
trap 'chown -R "$(stat -c %u:%g /target)" /target "$CARGO_HOME" || true' EXIT

# Alpine's images of Rust leave out the C library's files to link with; other images have to bring their own.
if command -v apk > /dev/null && ! apk info -e musl-dev > /dev/null; then
    apk add --no-cache --quiet musl-dev
fi

mkdir -p "/target/$TRIPLE/release"
rustc $RUSTC_OPTIONS --target "$TRIPLE" -o "/target/$TRIPLE/release/relay-forwarder" /forwarder/relay_forwarder.rs
cargo build --release --locked --target "$TRIPLE" $PACKAGES
