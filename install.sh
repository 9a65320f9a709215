#!/bin/sh
# Builds Belfry on a fresh machine. You may run it again at any time. It does only what is missing.
set -eu

BUN_VERSION=1.4.5

usage() {
  cat <<'END'
./install.sh              get Bun and the libraries of bun.lock, and build dist/belfry
./install.sh up [...]     build, then start Belfry here; `belfry up` gets the words after `up`
./install.sh test [...]   install the programs that the tests need, build, then run all tests
                          (--full runs the sizes of a release; `test scenarios` runs only the
                          tests with this word in their path)
./install.sh check        check types, lint, format, schema drift and licences; build nothing
./install.sh build        build dist/belfry, and print no next step
./install.sh release --key minisign.key
                          for maintainers: build the signed archives of every platform into
                          dist/release (--targets linux-x64,linux-arm64-musl builds only these)
./install.sh COMMAND ...  build, then run another command of Belfry, such as `status` or `version`

You need npm, or Bun 1.4.5 or newer, or curl with unzip and bash. The script works inside this folder.
Outside of it the script changes only these things:
- Bun, as a global package of npm, if there is none and npm may write there
- the caches of npm and Bun
- Debian packages that are missing, only for `test` and only as root. Their services are not started.
  unzip is also installed as root, if Bun must come from bun.sh.
END
}

# All messages go to stderr, because stdout belongs to the command that runs at the end.
say() { printf '%s\n' "install: $*" >&2; }
die() {
  say "$*"
  exit 1
}

# --- Bun -------------------------------------------------------------------------------------

# Whether version $1 is BUN_VERSION or newer. Anything that is not three numbers is too old.
new_enough() {
  awk -v have="$1" -v want="$BUN_VERSION" 'BEGIN {
    if (split(have, h, ".") < 3) exit 1
    split(want, w, ".")
    for (i = 1; i <= 3; i++) if (h[i] + 0 != w[i] + 0) exit !(h[i] + 0 > w[i] + 0)
  }'
}

works() {
  [ -x "$1" ] && new_enough "$("$1" --version 2>/dev/null || true)"
}

# Sets `bun` to the first one that will do.
find_bun() {
  for bun in "$root/.bun/bin/bun" "$(command -v bun || true)" "${HOME:-}/.bun/bin/bun"; do
    if works "$bun"; then return 0; fi
  done
  # npm's folder need not be on the PATH.
  command -v npm >/dev/null && bun=$(npm prefix --global 2>/dev/null)/bin/bun && works "$bun"
}

# With scripts switched off npm leaves the package without its binary; its own script repairs that.
npm_bun() {
  log=$(mktemp)
  if npm install --global --no-audit --no-fund --allow-scripts=bun "$@" "bun@$BUN_VERSION" \
    >"$log" 2>&1 </dev/null; then
    folder=$(npm root --global "$@" 2>/dev/null)/bun
    bun=$(npm prefix --global "$@" 2>/dev/null)/bin/bun
    works "$bun" || node "$folder/install.js" >>"$log" 2>&1 </dev/null || true
    if works "$bun"; then
      rm -f "$log"
      return 0
    fi
  fi
  say "npm could not install Bun: $(grep -v '^npm warn' "$log" | grep . | head -n 3 | tr '\n' ' ')"
  rm -f "$log"
  return 1
}

curl_bun() {
  if ! command -v unzip >/dev/null && can_install; then install_packages unzip; fi
  command -v unzip >/dev/null || die "Bun's installer needs unzip. Install unzip, then try again."
  command -v bash >/dev/null || die "Bun's installer needs bash. Install bash, then try again."
  # A shell the installer does not know keeps its hands off the start-up files of yours.
  curl -fsSL https://bun.sh/install |
    BUN_INSTALL="$root/.bun" SHELL=/bin/sh bash -s "bun-v$BUN_VERSION" >&2
  bun=$root/.bun/bin/bun
  works "$bun"
}

get_bun() {
  if find_bun; then return 0; fi
  if command -v npm >/dev/null; then
    if ! command -v bun >/dev/null; then
      if [ -w "$(npm prefix --global 2>/dev/null)/lib" ]; then
        say "getting Bun $BUN_VERSION from npm"
        if npm_bun; then return 0; fi
      fi
    fi
    say "getting Bun $BUN_VERSION from npm, into .bun/ of this folder"
    if npm_bun --prefix "$root/.bun"; then return 0; fi
  fi
  if command -v curl >/dev/null; then
    say "getting Bun $BUN_VERSION from bun.sh, into .bun/ of this folder"
    if curl_bun; then return 0; fi
  fi
  die "could not get Bun $BUN_VERSION. Install npm, curl or Bun itself (https://bun.sh), then try again."
}

# --- libraries and the binary ----------------------------------------------------------------

get_libraries() {
  stamp=$(cat package.json bun.lock | cksum)
  if [ "$(cat node_modules/.belfry-stamp 2>/dev/null || true)" = "$stamp" ]; then return 0; fi
  say "installing the libraries of bun.lock"
  "$bun" install --frozen-lockfile >&2 </dev/null ||
    die "could not install the libraries. The lines above say why."
  printf '%s\n' "$stamp" >node_modules/.belfry-stamp
}

# A folder's time changes when a file in it comes or goes, so folders are looked at as well.
up_to_date() {
  [ -x dist/belfry ] && [ -f dist/.built ] &&
    [ -z "$(find src cli migrations docs package.json bun.lock tsconfig.json -newer dist/.built)" ]
}

build() {
  if up_to_date; then return 0; fi
  say "building dist/belfry"
  mkdir -p dist
  : >dist/.building
  "$bun" run --silent build >&2 </dev/null ||
    die "could not build dist/belfry. The lines above say why."
  mv dist/.building dist/.built
}

ready() {
  get_bun
  # Scripts of package.json call `bun` by its name.
  PATH=$(dirname "$bun"):$PATH
  export PATH
  get_libraries
}

# --- programs that the tests need ------------------------------------------------------------

# Debian's packages for the programs that are not here. Gets the words behind `test`.
wanted_packages() {
  [ -n "$(find /usr/lib/postgresql/*/bin/initdb 2>/dev/null)" ] || has initdb || echo postgresql
  { has smtp-sink && has smtp-source; } || echo postfix
  has dkimverify || echo python3-dkim
  /usr/bin/python3 -c 'import authheaders, cryptography, dbusmock, jsonschema, jwt, nacl, spf, websockets' >/dev/null 2>&1 ||
    echo python3-authheaders python3-cryptography python3-dbusmock python3-jsonschema python3-jwt python3-nacl python3-spf python3-websockets libnotify4
  { has knotd && has knotc; } || echo knot
  { has bearerbox && has smsbox; } || echo kannel
  [ -x /usr/lib/kannel/test/fakesmsc ] || echo kannel-extras
  has php || echo php-cli
  has go || echo golang-go
  has Xvfb || echo xvfb
  has htpasswd || echo apache2-utils
  perl -e 'use Net::SSLeay' >/dev/null 2>&1 || echo libnet-ssleay-perl # swaks needs it for TLS
  for program in swaks msmtp s-nail mutt wrk strace python3 faketime tmux screen xterm openssl pgbouncer zsh fish jq curl patch argon2 oathtool chromium-headless-shell firefox-esr; do
    has "$program" || echo "$program"
  done
  case " $* " in *" --full "*)
    has qemu-aarch64-static || echo qemu-user-static
    [ -d /usr/aarch64-linux-gnu ] || echo libc6-arm64-cross
    ;;
  esac
}

has() {
  command -v "$1" >/dev/null || [ -x "/usr/sbin/$1" ]
}

is_root() { [ "$(id -u)" -eq 0 ]; }

can_install() { is_root && command -v apt-get >/dev/null; }

# While the file is there, Debian starts no service that a package brings.
no_services=/usr/sbin/policy-rc.d
made_no_services=

allow_services() {
  if [ -n "$made_no_services" ]; then rm -f "$no_services"; fi
  made_no_services=
}

# Installs what it can of the packages; never removes one that is there (another mail server, say).
install_packages() {
  if [ ! -e "$no_services" ]; then
    made_no_services=yes
    trap allow_services EXIT
    trap 'exit 130' INT TERM HUP
    printf '#!/bin/sh\nexit 101\n' >"$no_services"
    chmod 755 "$no_services"
  fi
  apt_get update || say "apt-get update failed. The known list of packages is used."
  if command -v debconf-set-selections >/dev/null; then
    echo 'postfix postfix/main_mailer_type select No configuration' | debconf-set-selections || true
  fi
  if ! apt_get install "$@"; then
    for package in "$@"; do apt_get install "$package" || say "could not install $package"; done
  fi
  allow_services
}

apt_get() {
  action=$1
  shift
  log=$(mktemp)
  case $action in
    update) set -- update ;;
    *) set -- install -y --no-install-recommends --no-remove "$@" ;;
  esac
  if DEBIAN_FRONTEND=noninteractive apt-get -q "$@" >"$log" 2>&1 </dev/null; then
    rm -f "$log"
  else
    tail -n 5 "$log" >&2
    rm -f "$log"
    return 1
  fi
}

get_peers() {
  packages=$(wanted_packages "$@" | tr '\n' ' ')
  if [ -z "$packages" ]; then return 0; fi
  if can_install; then
    say "installing programs that the tests need: $packages"
    # shellcheck disable=SC2086 # a list of words
    install_packages $packages
  elif command -v apt-get >/dev/null; then
    say "only root can install these packages: $packages"
    say "Tests that need them do not run. To install them: sudo apt-get install $packages"
  else
    say "these programs are missing (names of Debian's packages): $packages"
    say "Tests that need them do not run."
  fi
}

# --- the commands ----------------------------------------------------------------------------

tell_limits() {
  if is_root; then return 0; fi
  say "you are not root. Ports below 1024 (25, 80, 443, 465, 587) may be closed to you. Use higher ports."
}

# Belfry prints commands that begin with `belfry`.
tell_path() {
  if [ "$(command -v belfry || true)" = "$root/dist/belfry" ]; then return 0; fi
  say "to find the command belfry in another terminal: export PATH=\"$root/dist:\$PATH\""
}

from=$PWD
root=$(cd "$(dirname "$0")" && pwd)
cd "$root"
command=${1:-}
if [ $# -gt 0 ]; then shift; fi

case $command in
  help | -h | --help)
    usage
    ;;
  '')
    ready
    build
    say "the binary is $root/dist/belfry. ./install.sh up starts it."
    tell_path
    ;;
  build)
    ready
    build
    ;;
  check)
    ready
    exec "$bun" test/harness/check.ts "$@"
    ;;
  release)
    ready
    exec "$bun" test/harness/release.ts "$@"
    ;;
  test)
    get_peers "$@"
    ready
    build
    exec env BELFRY_TEST_BINARY="$root/dist/belfry" "$bun" test/harness/run.ts "$@"
    ;;
  *)
    ready
    build
    case $command in up | serve)
      tell_limits
      tell_path
      ;;
    esac
    cd "$from"
    exec "$root/dist/belfry" "$command" "$@"
    ;;
esac
