import { Database } from "bun:sqlite"
import { expect, setDefaultTimeout, test } from "bun:test"
import { chmodSync, copyFileSync, cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Glob } from "bun"
import { RESTORE_HOLD } from "../../src/jobs/work-item"
import type { BackupManifest } from "../../src/operations/backup/manifest"
import { type CountingRelay, countingRelay } from "../fakes/counting-relay"
import { type Receiver, receiver } from "../fakes/receiver"
import { overwrite, pagesOf } from "../faults/damage"
import { binary, makeHome, runBinary } from "../harness/binary"
import { leftover } from "../harness/leftovers"
import { NEXT_VERSION, type NextRelease, nextRelease } from "../harness/next-release"
import { missing } from "../harness/peers"
import { openScreen } from "../harness/screen"
import { sizes } from "../harness/sizes"
import { FIXTURE_KEY, fixturesOf, statementsOf } from "../harness/upgrade"
import { get, send, until } from "./mails"
import { SMALL } from "./monitor"
import { relaySettings, startServe } from "./serve"

setDefaultTimeout(900_000)

/** The owner of the box in the fixtures, who is an operator (test/harness/upgrade-fixture.ts). */
const OWNER = { email: "ann@example.org", password: "Quiet-River-42-stone" }
/** The last migration that the box has at the beginning. Four areas of the product came after it. */
const EARLIER = "0000_initial_schema"

const SENDERS = 8
/** Each submission to the first relay takes so long, so that there is always open work. */
const RELAY_MS = 150
/** In which whatever is sent without permission would come. */
const SILENCE_MS = 1500

/** A restore ends what these have, or adds rows of its own. */
const CHANGED = new Set([
  "nodes",
  "instance_values",
  "paused_queues",
  "refresh_tokens",
  "device_codes",
  "mfa_challenges",
  "password_resets",
])

interface Machine {
  home: string
  data_dir: string
  /** The file of its database. */
  path: string
  program: string
  env: Record<string, string>
}

/** An empty machine that has a program, and mail that leaves by this relay. */
function machine(program: string, { port }: CountingRelay): Machine {
  const home = leftover(makeHome())
  const own = join(home, "bin/belfry")
  mkdirSync(join(home, "bin"))
  copyFileSync(program, own)
  chmodSync(own, 0o755)
  const data_dir = join(home, "belfry")
  const env = relaySettings(port, {
    BELFRY_MAILBOX_LISTEN: "127.0.0.1:0",
    BELFRY_DNS_SERVERS: "127.0.0.1:9",
    BELFRY_WEBHOOKS_REQUIRE_HTTPS: "false",
    BELFRY_WEBHOOKS_ALLOW_PRIVATE: "127.0.0.0/8",
  })
  return { home, data_dir, path: join(data_dir, "belfry.db"), program: own, env }
}

/** What all commands and servers said, but for the one that shows a new key. */
const said: string[] = []

async function run(box: Machine, words: string[], input?: string) {
  const done = await runBinary(words, { ...box, ...(input !== undefined && { input }) })
  if (words[0] !== "keys") said.push(done.stdout, done.stderr)
  return done
}

/** A command on the data of the machine, which must end with this code. */
async function local<Answer>(box: Machine, words: string[], code = 0): Promise<Answer> {
  const done = await run(box, [...words, "--json", "--data-dir", box.data_dir])
  expect({ words, code: done.code, stderr: done.stderr }).toEqual({ words, code, stderr: "" })
  return JSON.parse(done.stdout) as Answer
}

const serve = (box: Machine, api_key: string, ...args: string[]) =>
  startServe({ ...box, api_key, args, onStderr: (line) => said.push(line) })

type Serving = Awaited<ReturnType<typeof serve>>

async function signIn(box: Machine, { url }: { url: string }): Promise<void> {
  const words = ["login", url, "--email", OWNER.email, "--password-stdin"]
  expect(await run(box, words, OWNER.password)).toMatchObject({ code: 0, stderr: "" })
}

/** One value of each row that the query finds. */
function column<Value>({ path }: Pick<Machine, "path">, sql: string, ...given: string[]): Value[] {
  using file = new Database(path, { readonly: true })
  return file
    .query(sql)
    .values(...given)
    .map(([value]) => value as Value)
}

/** A box whose data are those of an earlier version, which one command brings to the release. */
async function upgraded(release: NextRelease, relay: CountingRelay): Promise<Machine> {
  const box = machine(binary, relay)
  mkdirSync(box.data_dir, { mode: 0o700 })
  writeFileSync(join(box.data_dir, "master.key"), `${FIXTURE_KEY}\n`, { mode: 0o600 })
  const fixture = fixturesOf("sqlite").find(({ tag }) => tag === EARLIER)
  {
    using file = new Database(box.path, { create: true })
    for (const statement of await statementsOf(fixture?.path ?? "")) file.run(statement)
  }
  const mails = column<string>(box, "SELECT hex(id) FROM messages ORDER BY id")
  expect(mails.length).toBeGreaterThan(0)

  const words = ["upgrade", release.archive, "--public-key", release.public_key]
  expect(await local(box, words)).toMatchObject({ done: true })
  expect((await run(box, ["--version"])).stdout).toContain(NEXT_VERSION)
  const [last] = column(box, "SELECT max(tag) FROM belfry_migrations")
  expect(last).toBe("9999_next")
  expect(column(box, "SELECT hex(id) FROM messages ORDER BY id")).toEqual(mails)
  return box
}

/** A key of the project, whose endpoint from now on is this one. */
async function equipped(box: Machine, hook: Receiver): Promise<string> {
  await using server = await serve(box, "no key yet")
  await signIn(box, server)
  const made = await run(box, ["keys", "create", "--name", "load", "--scope", "*", "--quiet"])
  expect(made).toMatchObject({ code: 0, stderr: "" })
  const listed = await run(box, ["webhooks", "list", "--quiet"])
  const update = ["webhooks", "update", listed.stdout.trim(), "--endpoint", hook.url]
  expect(await run(box, update)).toMatchObject({ code: 0, stderr: "" })
  return made.stdout.trim()
}

/** Sends until it is told to end. `accepted` are the ids of what was answered with 201. */
function load(server: Serving) {
  const accepted: string[] = []
  let is_over = false
  const content = Buffer.from("a file").toString("base64")
  const sender = async (number: number) => {
    for (let at = 0; !is_over; at++) {
      const to = `p${number}-${at}@${at % 2 === 0 ? "even" : "odd"}.test`
      const files = at % 10 === 0 ? { attachments: [{ filename: `${at}.txt`, content }] } : {}
      accepted.push(await send(server, { from: "me@example.test", to, ...files }))
      await Bun.sleep(10)
    }
  }
  const work = Promise.all(Array.from({ length: SENDERS }, (_, number) => sender(number)))
  return {
    accepted,
    async end() {
      is_over = true
      await work
    },
  }
}

interface Kept {
  archive: string
  master_key: string
  manifest: BackupManifest
  api_key: string
  /** Mails that were accepted before the backup began. */
  accepted: string[]
}

/** Makes a backup under load, takes it and the key to a safe place, and loses the machine. */
async function backedUpAndLost(box: Machine, hook: Receiver): Promise<Kept> {
  const api_key = await equipped(box, hook)
  await using loaded = await serve(box, api_key)
  const in_two_hours = new Date(Date.now() + 7_200_000).toISOString()
  const later = { from: "me@example.test", to: "later@even.test", scheduled_at: in_two_hours }
  const scheduled = await send(loaded, later)
  const traffic = load(loaded)
  await until("the load", () => traffic.accepted.length >= sizes.lost_box, 600_000)
  const accepted = [scheduled, ...traffic.accepted]
  const made = await local<{ path: string }>(box, ["backup", "create"])
  expect(traffic.accepted.length).toBeGreaterThan(accepted.length - 1)
  await traffic.end()

  const safe = leftover(makeHome())
  const [archive, master_key] = [join(safe, "backup.tar"), join(safe, "master.key")]
  copyFileSync(made.path, archive)
  copyFileSync(join(box.data_dir, "master.key"), master_key)
  loaded.kill("SIGKILL")
  await loaded.exited
  rmSync(box.home, { recursive: true })
  const tar = Bun.spawnSync(["tar", "-xOf", archive, "manifest.json"])
  const manifest = JSON.parse(tar.stdout.toString()) as BackupManifest
  return { archive, master_key, manifest, api_key, accepted }
}

/** Restores on another machine, and finds there what the manifest counts. */
async function restored(box: Machine, { archive, master_key, manifest, accepted }: Kept) {
  await local(box, ["restore", archive, "--master-key", master_key])
  const rows = Object.keys(manifest.rows).filter((table) => !CHANGED.has(table))
  expect(rows.length).toBeGreaterThan(50)
  for (const table of rows) {
    const [found] = column<number>(box, `SELECT count(*) FROM "${table}"`)
    // The job that made the backup is in it, and ends with the restore.
    const wanted = (manifest.rows[table] ?? 0) - (table === "jobs" ? 1 : 0)
    expect([table, found]).toEqual([table, wanted])
  }
  const files = [...new Glob("blobs/**/*").scanSync({ cwd: box.data_dir, onlyFiles: true })]
  expect(files).toHaveLength(manifest.blobs.count)
  expect(manifest.blobs).toMatchObject({ missing: 0 })
  expect(manifest.blobs.count).toBeGreaterThan(0)
  const ids = new Set(column<string>(box, "SELECT lower(hex(id)) FROM messages"))
  expect(accepted.filter((id) => !ids.has(id.replaceAll("-", "")))).toEqual([])
}

/** Recipients of the mail that is held and due. */
const heldOf = (box: Machine): string[] =>
  column(box, "SELECT address FROM messages WHERE owner = ? AND scheduled_at IS NULL", RESTORE_HOLD)

const isEven = (recipient: string) => recipient.endsWith("@even.test")
const recipientsOf = ({ receipts }: CountingRelay) => receipts.flatMap((one) => one.recipients)

/** An operator looks at what is held, drops one half of the mail and releases the other. */
async function released(box: Machine, { api_key }: Kept, relay: CountingRelay, hook: Receiver) {
  const held = heldOf(box)
  const wanted = held.filter(isEven)
  expect(wanted.length).toBeGreaterThan(0)
  expect(wanted.length).toBeLessThan(held.length)
  const since = Date.now()
  await using server = await serve(box, api_key)
  await signIn(box, server)
  const env = { HOME: box.home, XDG_CONFIG_HOME: join(box.home, "config") }
  await using screen = await openScreen([box.program, "tui"], { ...SMALL, env })
  await screen.shows("● live")
  await screen.until("held mail", (text) => /@(even|odd)\.test .* held /.test(text))
  const listed = await run(box, ["emails", "list", "--to", held[0] ?? "", "--output", "table"])
  expect(listed.stdout).toMatch(/ held /)
  const status = await run(box, ["status", "--json"])
  expect(status.stdout).toContain(`wait in the queue ${RESTORE_HOLD}`)
  await screen.press("7")
  await screen.until("what is held", (text) => /held +[\d,]+ wait since a restore/.test(text))
  await Bun.sleep(SILENCE_MS)
  expect([relay.receipts.length, hook.received.length]).toEqual([0, 0])

  await screen.press("D")
  const [all] = column<number>(box, "SELECT count(*) FROM messages WHERE owner = ?", RESTORE_HOLD)
  await screen.shows(`Drop ${all} messages`)
  await screen.press("n")
  const odd = ["queue", "purge", RESTORE_HOLD, "--where", "kind=email,domain=odd.test"]
  const dropped = { messages: held.length - wanted.length, webhook_deliveries: 0, jobs: 0 }
  expect(await local(box, [...odd, "--dry-run"])).toMatchObject(dropped)
  expect(await local(box, [...odd, "--yes"])).toMatchObject(dropped)
  await screen.press("r")
  await screen.shows("held messages, deliveries and jobs?")
  await screen.press("y")
  await screen.shows("nothing is held since a restore")

  const open = "SELECT count(*) FROM webhook_deliveries WHERE status = 'pending'"
  await until("the mail", () => relay.receipts.length >= wanted.length, 600_000)
  await until("the webhooks", () => column(box, open)[0] === 0, 600_000)
  await Bun.sleep(SILENCE_MS)
  expect(recipientsOf(relay).sort()).toEqual(wanted.sort())
  const cancelled = "SELECT address FROM messages WHERE status_reason = 'cancelled'"
  expect(column<string>(box, cancelled).sort()).toEqual(
    held.filter((recipient) => !isEven(recipient)).sort(),
  )
  heardOnce(box, hook, since)
}

/** The endpoint got each delivery that was made since then, once. */
function heardOnce(box: Machine, { received }: Receiver, since: number): void {
  const made =
    "SELECT lower(hex(event_id)) FROM webhook_deliveries WHERE status = 'success' AND last_attempted_at >= ?"
  const heard = received.map(({ id }) => id.replace("evt_", "").replaceAll("-", "")).sort()
  expect(heard).toEqual(column<string>(box, made, String(since)).sort())
  expect(new Set(heard).size).toBe(heard.length)
  expect(heard.length).toBeGreaterThan(0)
}

/** A copy whose file lost pages gets the backup in its place, in the folder that stays, and holds what was open. */
async function putBack(box: Machine, kept: Kept, relay: CountingRelay) {
  overwrite(box.path, pagesOf(box.path, "messages", "leaf").slice(1, 3))
  expect(await run(box, ["db", "check", "--data-dir", box.data_dir])).toMatchObject({ code: 74 })
  for (const end of ["", "-wal", "-shm"]) rmSync(box.path + end, { force: true })
  await restored(box, kept)
  await local(box, ["db", "check"])
  await local(box, ["db", "stats"])
  await using server = await serve(box, kept.api_key)
  const counted = await local(box, ["queue", "purge", RESTORE_HOLD, "--dry-run"])
  const held = column(box, "SELECT count(*) FROM messages WHERE owner = ?", RESTORE_HOLD)[0]
  expect(counted).toMatchObject({ messages: held })
  expect(held).toBeGreaterThan(0)
  // New mail goes out, and nothing else does.
  const id = await send(server, { from: "me@example.test", to: "new@even.test" })
  await until("the new mail", async () => {
    return (await get<{ status: string }>(server, `/v1/emails/${id}`)).status === "sent"
  })
  await Bun.sleep(SILENCE_MS)
  expect(recipientsOf(relay)).toEqual(["new@even.test"])
}

test.skipIf(missing("tmux"))(
  "a box of an earlier version is upgraded, lost under load, restored elsewhere, and released in part; a damaged copy is put back",
  async () => {
    const release = await nextRelease()
    using hook = receiver(async () => {
      await Bun.sleep(30)
      return new Response("thanks")
    })
    using first = countingRelay({ delay_ms: RELAY_MS })
    const kept = await backedUpAndLost(await upgraded(release, first), hook)
    hook.received.length = 0

    using second = countingRelay()
    using third = countingRelay()
    const program = join(release.folder, "belfry")
    const box = machine(program, second)
    await restored(box, kept)
    const damaged = machine(program, third)
    cpSync(box.data_dir, damaged.data_dir, { recursive: true })
    await released(box, kept, second, hook)
    await putBack(damaged, kept, third)

    said.push(JSON.stringify(kept.manifest))
    for (const secret of [FIXTURE_KEY, OWNER.password, kept.api_key])
      expect(said.some((text) => text.includes(secret))).toBe(false)
  },
)
