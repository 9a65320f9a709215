import { Database } from "bun:sqlite"
import { expect, test } from "bun:test"
import { cpSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { RESTORE_HOLD } from "../../src/jobs/work-item"
import { receiver } from "../fakes/receiver"
import { overwrite, pagesOf } from "../faults/damage"
import { makeHome, runBinary } from "../harness/binary"
import { leftover } from "../harness/leftovers"
import { PLANTED_OWNER, PLANTED_SETTINGS, type Planted, plant } from "../harness/planted"
import { until } from "./mails"
import { startServe } from "./serve"

const env = { ...PLANTED_SETTINGS, BELFRY_LOG_LEVEL: "debug" }

interface Line {
  /** The command, or the server whose log it is. */
  of: string
  text: string
}

/** A machine whose every line is kept. */
function machine(said: Line[]) {
  const home = leftover(makeHome())
  const data_dir = join(home, "belfry")
  const run = async (words: string[], input?: string) => {
    const done = await runBinary(words, { home, env, ...(input !== undefined && { input }) })
    for (const text of [done.stdout, done.stderr]) said.push({ of: words.join(" "), text })
    return done
  }
  return {
    home,
    data_dir,
    path: join(data_dir, "belfry.db"),
    run,
    /** A command on the data of the machine, which must end with this code, for people and for programs. */
    async local(words: string[], code = 0) {
      for (const form of [["--json"], ["--output", "table"]]) {
        const done = await run([...words, ...form, "--data-dir", data_dir])
        expect({ words, code: done.code }).toEqual({ words, code })
      }
    },
    serve: (of: string) =>
      startServe({ home, env, api_key: "", onStderr: (text) => said.push({ of, text }) }),
    async signIn(url: string) {
      const { email, password } = PLANTED_OWNER
      await run(["login", url, "--email", email, "--password-stdin"], password)
    },
  }
}

type Machine = ReturnType<typeof machine>

const count = ({ path }: Machine, sql: string): number => {
  using file = new Database(path, { readonly: true })
  return Number(file.query(sql).values()[0]?.[0])
}

/** Until each message was tried in vain, and deliveries beyond so many. Answers how many were. */
async function triedInVain(box: Machine, before = 0): Promise<number> {
  const untried = "SELECT count(*) FROM messages WHERE attempt = 0"
  const failed = "SELECT count(*) FROM webhook_deliveries WHERE attempt > 0"
  await until("the attempts", () => count(box, untried) === 0 && count(box, failed) > before)
  return count(box, failed)
}

/** Everything that looks at the data, and a rotation between two backups. */
async function lookedAt(box: Machine): Promise<void> {
  await box.run(["status", "--json"])
  await box.run(["status", "--output", "table"])
  const looks = [
    ["backup", "create"],
    ["backup", "list"],
    ["backup", "verify"],
    ["db", "check"],
    ["db", "stats"],
  ]
  for (const words of looks) await box.local(words)
  await box.run(["admin", "rotate-master-key", "--data-dir", box.data_dir])
  await box.local(["backup", "create"])
}

async function archivesOf(box: Machine): Promise<string[]> {
  const listed = await box.run(["backup", "list", "--json", "--data-dir", box.data_dir])
  return (JSON.parse(listed.stdout) as { path: string }[]).map(({ path }) => path)
}

interface Kept {
  from: Machine
  archive: string
  planted: Planted
  /** Deliveries that were tried. */
  tried: number
}

/** Restores the archive on another machine, releases what it held, and sends again. */
async function restoredAndReleased(said: Line[], { from, archive, planted, tried }: Kept) {
  const box = machine(said)
  const key = join(from.data_dir, "master.key")
  const words = ["restore", archive, "--master-key", key, "--data-dir", box.data_dir]
  await box.run([...words, "--dry-run"])
  expect((await box.run(words)).code).toBe(0)
  await using server = await box.serve("the restored server")
  await box.signIn(server.url)
  await box.run(["status", "--output", "table"])
  await box.local(["queue", "purge", RESTORE_HOLD, "--dry-run"])
  const held = `SELECT count(*) FROM messages WHERE owner = '${RESTORE_HOLD}'`
  expect(count(box, held)).toBeGreaterThan(0)
  await box.run(["queue", "resume", RESTORE_HOLD, "--yes"])
  expect(count(box, held)).toBe(0)
  await planted.send(server.url)
  await triedInVain(box, tried)
  return box
}

/** Loses pages of messages and of their contents, and asks what is wrong. */
async function checked(box: Machine): Promise<void> {
  for (const table of ["messages", "message_contents"])
    overwrite(box.path, pagesOf(box.path, table, "leaf").slice(0, 1))
  expect((await box.run(["db", "check", "--data-dir", box.data_dir])).code).toBe(74)
  await box.run(["db", "stats", "--data-dir", box.data_dir])
}

/** What an archive tells about itself, and what it was made with. */
function papersOf(archive: string): string {
  const papers = ["manifest.json", "config.json", "SHA256"]
  const tar = Bun.spawnSync(["tar", "-xOf", archive, ...papers])
  expect(tar.exitCode).toBe(0)
  const names = Bun.spawnSync(["tar", "-tvf", archive])
  return `${tar.stdout}${names.stdout}`
}

const shown = (said: Line[], { shownIn }: Planted) =>
  said.flatMap(({ of, text }) => shownIn(text).map((value) => `${value} in ${of}`))

test("planted secrets are in no manifest, log or line of a backup, a rotation, a restore and a check", async () => {
  using hook = receiver(() => new Response("no", { status: 500 }))
  const said: Line[] = []
  const box = machine(said)
  let planted: Planted
  let tried: number
  {
    await using server = await box.serve("the server")
    planted = await plant({ url: server.url, data_dir: box.data_dir, hook: hook.url })
    await box.signIn(server.url)
    tried = await triedInVain(box)
    await lookedAt(box)
  }
  await box.local(["backup", "create"])
  const archives = await archivesOf(box)
  expect(archives.length).toBeGreaterThan(4)
  for (const archive of archives) {
    expect(planted.shownIn(papersOf(archive))).toEqual([])
    const bytes = readFileSync(archive)
    expect(planted.unsealedIn(bytes)).toEqual([])
    expect(planted.shownIn(bytes.toString("latin1")).length).toBeGreaterThan(0) // what rows and files have
  }
  const restored = await restoredAndReleased(said, {
    ...{ from: box, archive: archives[0] ?? "", planted, tried },
  })
  const damaged = machine(said)
  cpSync(restored.data_dir, damaged.data_dir, { recursive: true })
  await checked(damaged)
  expect((await box.run(["smoke", "--format", "tap"])).code).toBe(0)

  expect(shown(said, planted)).toEqual([])
  expect(said.map(({ text }) => text).join("\n")).not.toMatch(/svc_live_|whsec_/)
  const logged = said.filter(({ of }) => of === "the server" || of === "the restored server")
  expect(logged.length).toBeGreaterThan(20)
})
