import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Lines, readLines } from "./lines"
import { locate, missing, type Peer } from "./peers"
import { freePort } from "./ports"
import { NEVER_MS } from "./waits"

/** For `describe.skipIf(noKannel)`. */
export const noKannel = missing("bearerbox", "smsbox", "fakesmsc")

/** Names of ports, as the guide's configuration has them. */
const PORTS = { "13000": "admin", "13001": "smsbox", "13010": "smsc", "13013": "sendsms" } as const

/** A text as a phone shows it. */
interface PhoneText {
  from: string
  to: string
  text: string
}

/** Debian's Kannel, with its `fakesmsc` in the place of a phone network. Leaving its scope ends all three. */
export interface Kannel extends AsyncDisposable {
  /** What the guide says of its usual ports, with those of this one. */
  atItsPorts(text: string): string
  /** Begins to work, with a configuration for the usual ports. */
  start(configuration: string): Promise<void>
  /** The texts that phones have got. Waits for as many. */
  phones(count: number): Promise<PhoneText[]>
  /** Somebody types a text. */
  type(text: PhoneText): Promise<void>
}

export async function kannel(): Promise<Kannel> {
  const folder = mkdtempSync(join(tmpdir(), "belfry-kannel-"))
  const ports = new Map<string, number>()
  for (const usual of Object.keys(PORTS)) ports.set(usual, await freePort())
  const atItsPorts = (text: string) =>
    [...ports].reduce((changed, [usual, port]) => changed.replaceAll(usual, String(port)), text)
  const file = join(folder, "kannel.conf")
  const running: Bun.Subprocess[] = []
  const launch = (program: Peer, ...words: string[]) => {
    const cmd = [locate(program) ?? program, ...words]
    const child = Bun.spawn({ cmd, cwd: folder, stdin: "ignore", stdout: "ignore", stderr: "pipe" })
    running.push(child)
    return child
  }
  const network: Lines[] = []
  let phone: Bun.Subprocess | undefined

  /** One client of the network at a time: it sends what it was given, and then only listens. */
  async function connect(...texts: string[]) {
    phone?.kill("SIGKILL")
    await phone?.exited
    const words = ["-H", "127.0.0.1", "-r", String(ports.get("13010"))]
    const child = launch(
      "fakesmsc",
      ...words,
      "-i",
      "0.01",
      "-m",
      String(texts.length),
      ...(texts.length > 0 ? texts : ["1 2 text none"]),
    )
    network.push(readLines(child.stderr))
    phone = child
    await until("the phone network", async () =>
      (await status(ports.get("13000"))).includes("(online "),
    )
  }

  return {
    atItsPorts,
    async start(configuration) {
      writeFileSync(file, atItsPorts(configuration))
      launch("bearerbox", "-v", "4", file)
      await until("bearerbox", () => status(ports.get("13000")))
      launch("smsbox", "-v", "4", file)
      await until("smsbox", () => fetch(`http://127.0.0.1:${ports.get("13013")}/`))
      await connect()
    },
    async phones(count) {
      const got = () => textsOf(network.flatMap(({ all }) => all))
      await until(`${count} texts`, async () => got().length >= count)
      return got()
    },
    type: ({ from, to, text }) => connect(`${from} ${to} text ${text}`),
    async [Symbol.asyncDispose]() {
      for (const child of running) child.kill("SIGKILL")
      await Promise.all(running.map(({ exited }) => exited))
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const status = async (port: number | undefined) =>
  (await fetch(`http://127.0.0.1:${port}/status.txt?password=kannel-admin`)).text()

/** Waits until the work succeeds with something. */
async function until(what: string, work: () => Promise<unknown>): Promise<void> {
  const end = performance.now() + NEVER_MS
  for (;;) {
    if (await work().catch(() => false)) return
    if (performance.now() > end) throw new Error(`Kannel: ${what} did not come`)
    await Bun.sleep(20)
  }
}

const GOT = /Got message \d+: <(\S+) (\S+) (?:udh (\S+) )?(text|data|ucs-2) (.*)>$/

/** What `fakesmsc` tells of texts, with the parts of each put together. */
function textsOf(lines: string[]): PhoneText[] {
  const parts = new Map<string, { from: string; to: string; count: number; bytes: Buffer[] }>()
  for (const line of lines) {
    const [, from = "", to = "", header = "", kind, said = ""] = GOT.exec(line) ?? []
    if (!kind) continue
    // 05 00 03, a number that the parts share, how many they are, and which one this is (3GPP TS 23.040, 9.2.3.24.1).
    const [, , , shared, count = 1, at = 1] = decoded(header)
    const key = shared === undefined ? String(parts.size) : `${to} ${shared}`
    const text = parts.get(key) ?? { from, to, count, bytes: [] }
    text.bytes[at - 1] = kind === "text" ? Buffer.from(said) : decoded(said)
    parts.set(key, text)
  }
  return [...parts.values()].flatMap(({ from, to, count, bytes }) =>
    bytes.filter(Boolean).length === count
      ? [{ from, to, text: readable(Buffer.concat(bytes)) }]
      : [],
  )
}

const decoded = (text: string): Buffer =>
  Buffer.from(
    text
      .replaceAll("+", " ")
      .replace(/%(..)/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16))),
    "latin1",
  )

/** It does not tell the alphabet of a part. UCS-2 with a space or a Latin letter has a zero byte, and UTF-8 has none. */
const readable = (bytes: Buffer): string =>
  bytes.includes(0) ? Buffer.from(bytes).swap16().toString("utf16le") : bytes.toString("utf8")
