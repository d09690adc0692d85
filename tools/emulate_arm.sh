#!/bin/sh
# Runs this tree on a 64-bit Arm processor that QEMU emulates:
#
#     tools/emulate_arm.sh FOLDER -m pytest tests/compilation/test_integers.py
#
# FOLDER gets QEMU, Debian's Python for Arm and the wheels of Sabir and its tests, which the first call downloads
# (200 MB, unpacked 950); the rest of the line goes to that Python. It needs Debian 12 with apt-get, dpkg, pip and
# Python 3.11, and no rights of root. CPU=neoverse-n1 emulates that processor; by default it has all that QEMU knows.
set -eu

folder=${1:?the folder of the emulator}
shift
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
tree=$(cd "$(dirname "$0")/.." && pwd)

if [ ! -e "$folder/ready" ]; then
    (
        mkdir -p "$folder/apt/lists/partial" "$folder/apt/archives/partial" "$folder/debian" "$folder/qemu"
        : >"$folder/apt/status"
        cd "$folder/apt"
        apt-get download qemu-user-static
        for_arm="-o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::Lists=$folder/apt/lists
            -o Dir::State::status=$folder/apt/status -o Dir::Cache::archives=$folder/apt/archives
            -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache="
        # no quotes: each word is an option
        apt-get $for_arm update
        apt-get $for_arm install --download-only --yes --no-install-recommends python3.11 libstdc++6
        dpkg -x qemu-user-static_*.deb "$folder/qemu"
        for package in archives/*.deb; do
            dpkg -x "$package" "$folder/debian"
        done
    )
    requirements=$(python3 - "$tree/pyproject.toml" <<'END'
import sys, tomllib
project = tomllib.load(open(sys.argv[1], "rb"))["project"]
tests = "pytest", "hypothesis", "onnx>", "onnxruntime", "safetensors", "pillow"
wanted = project["dependencies"] + [r for r in project["optional-dependencies"]["test"] if r.startswith(tests)]
print("\n".join(r.partition(";")[0] for r in wanted if not r.startswith("pytest-")))
END
)
    echo "$requirements" >"$folder/requirements.txt"
    python3 -m pip install --quiet --target "$folder/packages" --requirement "$folder/requirements.txt" \
        --only-binary=:all: --python-version 3.11 --implementation cp \
        --platform manylinux2014_aarch64 --platform manylinux_2_27_aarch64 --platform manylinux_2_28_aarch64
    # a test that starts Python starts it in the emulator, too
    echo 'import os, sys; sys.executable = os.environ["EMULATED_PYTHON"]' >"$folder/packages/sitecustomize.py"
    cat >"$folder/python" <<END
#!/bin/sh
exec "$folder/qemu/usr/bin/qemu-aarch64-static" -L "$folder/debian" -cpu "\${CPU-max}" \
    "$folder/debian/usr/bin/python3.11" "\$@"
END
    chmod +x "$folder/python"
    touch "$folder/ready"
fi

mkdir -p -m 700 "$folder/cache"
export EMULATED_PYTHON="$folder/python" PYTHONHOME="$folder/debian/usr" PYTHONPATH="$tree/src:$folder/packages"
export SABIR_CACHE="${SABIR_CACHE-$folder/cache}"
exec "$folder/python" "$@"
