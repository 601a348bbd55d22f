#!/bin/sh
# Makes .venv from requirements-dev.txt, and sees to a Java for Spark. Instant when nothing is to do;
# may be killed at any moment and run twice at once.
set -eu
cd "$(dirname "$0")"
# The Makefile puts .venv first on PATH. What is found there may be half of an earlier attempt, and is
# deleted below.
PATH=$(printf '%s' "$PATH" | tr ':' '\n' | grep -vxF "$PWD/.venv/bin" | paste -sd: -)
say() { echo "setup: $*" >&2; }
fail() { say "$*"; exit 1; }

# One at a time, where the system can (the lock is on this very file, so nothing is left behind).
if command -v flock >/dev/null 2>&1; then
    exec 9<setup.sh
    flock 9 || true
fi

on_debian_as_root() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }

apt_install() { # the first of these packages that there is
    say "installing $1 ..."
    { apt-get update -qq || true
      for package in "$@"; do
          DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" && return 0
      done; } >&2
    return 1
}

java_version() { # of the program $1: 8, 11, 17 ...; 0 if it is none
    "$1" -version 2>&1 | awk -F'"' '/version "/ {split($2, v, "[.+-]"); print (v[1] == 1 ? v[2] : v[1]); found = 1; exit}
                                    END {if (!found) print 0}'
}

good_java() {
    if [ -n "${JAVA_HOME:-}" ]; then
        [ "$(java_version "$JAVA_HOME/bin/java")" -ge 17 ] ||
            fail "JAVA_HOME is $JAVA_HOME, which is no Java 17 or later: point it at one, or unset it."
        return 0
    fi
    command -v java >/dev/null 2>&1 && [ "$(java_version java)" -ge 17 ] && return 0
    [ -x .venv/bin/java ] && [ "$(java_version .venv/bin/java)" -ge 17 ]
}

link_java() { # macOS: Homebrew's Java is on no PATH; the Makefile puts .venv/bin first
    for home in "$(/usr/libexec/java_home -v 17+ 2>/dev/null || true)" \
        /opt/homebrew/opt/openjdk /opt/homebrew/opt/openjdk@21 /opt/homebrew/opt/openjdk@17 \
        /usr/local/opt/openjdk /usr/local/opt/openjdk@21 /usr/local/opt/openjdk@17; do
        if [ -n "$home" ] && [ -x "$home/bin/java" ] && [ "$(java_version "$home/bin/java")" -ge 17 ]; then
            printf '#!/bin/sh\nexec "%s/bin/java" "$@"\n' "$home" >.venv/bin/java
            chmod +x .venv/bin/java
            return 0
        fi
    done
    return 1
}

good_python() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 15))' 2>/dev/null; }

has_venv() { "$1" -c 'import ensurepip, venv' 2>/dev/null; }

find_python() { # one that can make a virtual environment, if there is one
    found=
    for python in python3 python3.11 python3.12 python3.13 python3.14; do
        good_python "$python" || continue
        [ "$("$python" -c 'import os, sys; print(os.path.realpath(sys.prefix))')" != "$(pwd -P)/.venv" ] || continue
        found=${found:-$(command -v "$python")}
        has_venv "$python" && command -v "$python" && return 0
    done
    echo "$found"
}

# What .venv must have been made from. cksum is everywhere, unlike sha256sum.
wanted() { echo "$(cksum <requirements-dev.txt) $(.venv/bin/python -c 'import sys; print(sys.version)' 2>/dev/null | tr '\n' ' ')"; }

stamp=.venv/requirements.stamp
unfinished=.venv/unfinished
if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$(wanted)" ]; then
    # Half of an earlier attempt can't be told from all of it, so that one begins anew.
    if [ -e "$unfinished" ] || ! good_python .venv/bin/python || ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
        python=$(find_python)
        [ -n "$python" ] || fail "Python 3.11 to 3.14 is needed: install it (macOS: brew install python@3.12; Debian: apt-get install python3 python3-venv)."
        if ! has_venv "$python"; then # Debian's has it in a package of its own
            package=python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv
            { [ "$(command -v "$python")" = "/usr/bin/${python##*/}" ] && on_debian_as_root && apt_install "$package" && has_venv "$python"; } ||
                fail "$python lacks the modules venv and ensurepip; install them (Debian: apt-get install $package), or another Python 3.11 to 3.14."
        fi
        say "making .venv with $python"
        mkdir -p .venv
        touch "$unfinished"
        find .venv -mindepth 1 -maxdepth 1 ! -name unfinished -exec rm -rf {} +
        problem=$("$python" -m venv .venv 2>&1) ||
            fail "$python can't make a virtual environment: $(echo "$problem" | tail -n 1)"
    fi
    touch "$unfinished"
    rm -f "$stamp" .venv/spark-classes.jsa
    say "installing the packages of requirements-dev.txt (1.3 GB; a minute or two) ..."
    awk '/^uv==/ {found = 1} found {print} found && !/\\$/ {exit}' requirements-dev.txt >.venv/uv.txt # with its hashes
    problem=$(.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r .venv/uv.txt 2>&1) ||
        fail "pip can't install uv; is the network, or the proxy, or PIP_INDEX_URL all right? $(echo "$problem" | grep -i error | tail -n 1)"
    # uv does not read pip's configuration: where it names a mirror, there may be nothing else.
    index=${PIP_INDEX_URL:-$(.venv/bin/python -m pip config get global.index-url 2>/dev/null || true)}
    if [ -n "$index" ] && [ -z "${UV_INDEX_URL:-}${UV_DEFAULT_INDEX:-}" ]; then
        export UV_DEFAULT_INDEX="$index"
    fi
    .venv/bin/uv pip install --quiet --compile-bytecode --python .venv/bin/python --require-hashes -r requirements-dev.txt ||
        fail "the packages can't be installed; the lines above say why (network? proxy? UV_DEFAULT_INDEX? disk?)."
    wanted >"$stamp.new"
    mv "$stamp.new" "$stamp"
    rm -f "$unfinished"
    say ".venv is ready"
fi

# `import weir` and `weir` without PYTHONPATH; relative, so that the folder of all this may be moved.
for packages in .venv/lib/python3*/site-packages; do
    [ -f "$packages/weir.pth" ] || echo ../../../../plugins >"$packages/weir.pth"
done
if ! grep -qs -e '-P -m weir.terminal' .venv/bin/weir; then
    cat >.venv/bin/weir.new <<'END'
#!/bin/sh
# The command `weir` of the source tree that this folder lies in. -P: no module of the current folder.
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
exec "$here/python" -P -m weir.terminal "$@"
END
    chmod +x .venv/bin/weir.new
    mv .venv/bin/weir.new .venv/bin/weir
fi

if ! good_java && ! link_java; then
    { on_debian_as_root && apt_install openjdk-17-jre-headless default-jre-headless && good_java; } ||
        fail "Spark needs Java 17 or later: install it (macOS: brew install openjdk@17; Debian: apt-get install openjdk-17-jre-headless), or set JAVA_HOME."
fi

# Saves each job of Spark some seconds; without it they only start later. It is renamed when it is
# complete, so that a JVM never finds half of one.
if [ ! -f .venv/spark-classes.jsa ]; then
    say "letting Java learn which classes Spark loads (half a minute, once) ..."
    rm -rf .venv/spark-classes-*
    problem=$(PATH="$PWD/.venv/bin:$PATH" .venv/bin/python -P -m weir.local.spark_start 2>&1) ||
        say "that failed, so that jobs start some seconds slower: $problem"
fi
