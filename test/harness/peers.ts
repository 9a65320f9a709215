import { appendFileSync, existsSync } from "node:fs"

/** Foreign programs that tests talk to, and the Debian package that brings each. */
const packages = {
  "smtp-sink": "postfix",
  "smtp-source": "postfix",
  postfix: "postfix",
  postmap: "postfix",
  swaks: "swaks",
  msmtp: "msmtp",
  "s-nail": "s-nail",
  mutt: "mutt",
  wrk: "wrk",
  strace: "strace",
  python3: "python3",
  faketime: "faketime",
  dkimverify: "python3-dkim",
  knotd: "knot",
  knotc: "knot",
  bearerbox: "kannel",
  smsbox: "kannel",
  fakesmsc: "kannel-extras",
  tmux: "tmux",
  initdb: "postgresql",
  openssl: "openssl",
  pgbouncer: "pgbouncer",
  node: "nodejs",
  php: "php-cli",
  go: "golang-go",
  screen: "screen",
  xterm: "xterm",
  Xvfb: "xvfb",
  zsh: "zsh",
  fish: "fish",
  jq: "jq",
  curl: "curl",
  "chromium-headless-shell": "chromium-headless-shell",
  "firefox-esr": "firefox-esr",
  patch: "patch",
  argon2: "argon2",
  oathtool: "oathtool",
  htpasswd: "apache2-utils",
  "qemu-aarch64-static": "qemu-user-static",
} as const

export type Peer = keyof typeof packages

/** Debian keeps some of them out of an ordinary PATH. */
const PLACES = [
  ...["/usr/bin", "/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/opt/homebrew/bin"],
  "/usr/lib/kannel/test",
]

/** Where the program is, or undefined. */
export function locate(peer: Peer): string | undefined {
  const found = PLACES.map((folder) => `${folder}/${peer}`).find((path) => existsSync(path))
  return Bun.which(peer) ?? found
}

const noted = new Set<string>()

/**
 * For `describe.skipIf(missing("swaks"))`: true, and said in the runner's summary, where a program
 * is not installed. A test that did not run is never counted as passed.
 */
export function missing(...peers: Peer[]): boolean {
  const absent = peers.filter((peer) => !locate(peer))
  for (const peer of absent) note(`needs ${peer} (apt-get install ${packages[peer]})`)
  return absent.length > 0
}

/** Modules of Debian's Python, and the package that brings each. */
const modules = {
  dkim: "python3-dkim",
  spf: "python3-spf",
  authheaders: "python3-authheaders",
  nacl: "python3-nacl",
  websockets: "python3-websockets",
  dbusmock: "python3-dbusmock",
  jwt: "python3-jwt",
  cryptography: "python3-cryptography",
  jsonschema: "python3-jsonschema",
} as const

/** Debian's own Python: the packages belong to no other. */
export const DEBIAN_PYTHON = "/usr/bin/python3"

const FIND =
  "import importlib.util as i, sys; print(*[n for n in sys.argv[1:] if not i.find_spec(n)])"

/** As `missing`, for modules that a script of `DEBIAN_PYTHON` needs. */
export function missingModules(...names: (keyof typeof modules)[]): boolean {
  const there = existsSync(DEBIAN_PYTHON)
  const found = there ? Bun.spawnSync([DEBIAN_PYTHON, "-c", FIND, ...names]).stdout.toString() : ""
  const absent = there ? names.filter((name) => found.split(/\s+/).includes(name)) : names
  for (const name of absent) note(`needs ${modules[name]} (apt-get install ${modules[name]})`)
  return absent.length > 0
}

/** As `missing`, for Python with the time zones of the machine. */
export function missingZones(): boolean {
  const is_missing = !existsSync(DEBIAN_PYTHON) || !existsSync("/usr/share/zoneinfo/Asia/Kathmandu")
  if (is_missing) note("needs python3 with tzdata (apt-get install python3 tzdata)")
  return is_missing
}

/** Has the runner print `not run: <reason>` beside its totals. */
export function note(reason: string) {
  if (noted.has(reason)) return
  noted.add(reason)
  const file = process.env.BELFRY_TEST_NOTES
  if (file) appendFileSync(file, `${reason}\n`)
  else console.error(`not run: ${reason}`)
}
