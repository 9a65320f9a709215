import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { locate, missing } from "./peers"
import { freePort } from "./ports"
import { NEVER_MS } from "./waits"

/** For `describe.skipIf(noKnot)`. */
export const noKnot = missing("knotd", "knotc")

/** Records of a zone as its file has them, without SOA and NS: `@ TXT "v=spf1 -all"`. */
export type Records = string[]

/** An authoritative name server of Debian's: `await using knot = await startKnot()`. */
export interface Knot extends AsyncDisposable {
  /** `127.0.0.1:port`, as the settings take it. */
  address: string
  /** Puts these records in the place of the zone's, and returns when they are served. */
  serve(zone: string, records: Records): Promise<void>
}

export async function startKnot(zones: Record<string, Records> = {}): Promise<Knot> {
  const folder = mkdtempSync(join(tmpdir(), "belfry-knot-"))
  for (const name of ["zones", "run", "db"]) mkdirSync(join(folder, name))
  const port = await freePort()
  const known = new Map<string, number>()
  const write = (zone: string, records: Records) => {
    known.set(zone, (known.get(zone) ?? 0) + 1)
    writeFileSync(fileOf(folder, zone), zoneText(zone, known.get(zone) ?? 1, records))
  }
  const configure = () => writeFileSync(confOf(folder), conf(folder, port, [...known.keys()]))
  for (const [zone, records] of Object.entries(zones)) write(zone, records)
  configure()

  const child = Bun.spawn({
    cmd: [locate("knotd") ?? "knotd", "-c", confOf(folder)],
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore",
  })
  const knot: Knot = {
    address: `127.0.0.1:${port}`,
    async serve(zone, records) {
      const is_new = !known.has(zone)
      write(zone, records)
      if (is_new) configure()
      await control(folder, is_new ? ["reload"] : ["-b", "zone-reload", zone])
      await loaded(folder, zone, known.get(zone) ?? 1)
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL")
      await child.exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
  try {
    for (const [zone, serial] of known) await loaded(folder, zone, serial)
    if (known.size === 0) await until(() => control(folder, ["status"]))
    return knot
  } catch (error) {
    await knot[Symbol.asyncDispose]()
    throw error
  }
}

const fileOf = (folder: string, zone: string) => join(folder, "zones", `${zone}.zone`)
const confOf = (folder: string) => join(folder, "knot.conf")
const socketOf = (folder: string) => join(folder, "run", "knot.sock")

const conf = (folder: string, port: number, zones: string[]) => `server:
    rundir: "${join(folder, "run")}"
    listen: 127.0.0.1@${port}
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
control:
    listen: "${socketOf(folder)}"
database:
    storage: "${join(folder, "db")}"
log:
  - target: stderr
    any: error
template:
  - id: default
    storage: "${join(folder, "zones")}"
    file: "%s.zone"
    semantic-checks: off
    zonefile-sync: -1
    journal-content: none
zone:
${zones.map((zone) => `  - domain: ${zone}\n`).join("")}`

/** Strings of more than 255 bytes are split, as every provider does. */
const zoneText = (zone: string, serial: number, records: Records) => `$ORIGIN ${zone}.
$TTL 60
@ SOA ns1.${zone}. hostmaster.${zone}. ${serial} 3600 600 86400 60
@ NS ns1.${zone}.
ns1 A 127.0.0.1
${records.map(split).join("\n")}
`

const split = (record: string) =>
  record.replace(/"([^"]{256,})"/g, (_, text: string) =>
    (text.match(/.{1,255}/g) ?? []).map((part) => `"${part}"`).join(" "),
  )

async function loaded(folder: string, zone: string, serial: number) {
  await until(async () => {
    const status = await control(folder, ["zone-status", zone])
    if (!new RegExp(`serial: ${serial}\\b`).test(status))
      throw new Error(`knot does not serve ${zone}`)
  })
}

async function until(work: () => Promise<unknown>) {
  const end = performance.now() + NEVER_MS
  for (;;) {
    try {
      await work()
      return
    } catch (error) {
      if (performance.now() > end) throw error
      await Bun.sleep(20)
    }
  }
}

async function control(folder: string, words: string[]): Promise<string> {
  const cmd = [locate("knotc") ?? "knotc", "-s", socketOf(folder), ...words]
  const child = Bun.spawn({ cmd, stdin: "ignore", stdout: "pipe", stderr: "pipe" })
  const [stdout, stderr, code] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ])
  if (code !== 0) throw new Error(`knotc ${words.join(" ")}: ${stderr}${stdout}`)
  return stdout
}
