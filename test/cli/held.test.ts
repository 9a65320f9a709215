import { Database } from "bun:sqlite"
import { afterAll, expect, test } from "bun:test"
import { join } from "node:path"
import { countHeldHere, dropHeldHere, type ServerRun } from "../../cli/local/held"
import { program } from "../harness/program"
import { environment, freshHome, onTerminal } from "./belfry"
import { FakeApi, KEY } from "./fake-api"
import { belfry } from "./lines"

const HELD = "held_after_restore"
const children: Bun.Subprocess[] = []
afterAll(() => {
  for (const child of children) child.kill("SIGKILL")
})

/** A server of its own that started held, with two mails to come. */
async function heldServer() {
  const home = freshHome()
  const data_dir = join(home, "held box")
  const env = environment({
    HOME: home,
    ...{ BELFRY_SMTP_SUBMISSION_LISTEN: "127.0.0.1:0", BELFRY_SMTP_INBOUND_LISTEN: "127.0.0.1:0" },
    ...{ BELFRY_MAILBOX_LISTEN: "127.0.0.1:0", BELFRY_STORAGE_BALLAST_MB: "0" },
  })
  const start = async (...words: string[]) => {
    const options = ["--json", "--data-dir", data_dir]
    const cmd = [...program, ...words, ...options]
    const child = Bun.spawn(cmd, { env, stdout: "pipe", stderr: "ignore" })
    children.push(child)
    const { value } = await child.stdout.getReader().read()
    return { child, ready: JSON.parse(new TextDecoder().decode(value)) as { url: string } }
  }
  const first = await start("up", "--port", "0")
  const mail = ["emails", "send", "--from", "me@mailbox.test", "--subject", "x", "--text", "x"]
  for (const to of ["ann@mailbox.test", "zoe@mailbox.test"]) {
    const words = [...mail, "--to", to, "--schedule-at", "in 2 hours"]
    expect((await belfry(words, { env })).exit).toBe(0)
  }
  first.child.kill("SIGTERM")
  await first.child.exited
  await start("serve", "--hold", "--listen", "127.0.0.1:0")
  return { data_dir, cli: (...words: string[]) => belfry(words, { env }) }
}

const counts = { messages: 2, webhook_deliveries: 0, jobs: 0 }

test("resume with --data-dir acts on the server of that folder, asks first, and calls no other one", async () => {
  using api = new FakeApi()
  const { data_dir, cli } = await heldServer()
  const resume = ["queue", "resume", HELD]
  const named = [...resume, "--data-dir", data_dir]
  const seen = await cli(...named, "--dry-run")
  expect([seen.exit, JSON.parse(seen.out)]).toEqual([0, { queue: HELD, ...counts }])
  const unsure = await cli(...named)
  expect([unsure.exit, JSON.parse(unsure.err).error.code]).toEqual([2, "unconfirmed"])
  for (const other of [
    ["--url", api.url],
    ["--profile", "local"],
    ["--api-key", KEY],
  ]) {
    const { exit, err } = await cli(...named, ...other, "--yes")
    expect([exit, JSON.parse(err).error.message]).toEqual([2, expect.stringContaining("by HTTP")])
  }
  const { exit, err } = await cli("queue", "resume", "email", "--data-dir", data_dir)
  expect([exit, JSON.parse(err).error.message]).toEqual([2, expect.stringContaining(HELD)])
  expect(JSON.parse((await cli(...named, "--dry-run")).out)).toMatchObject(counts)
  const done = await cli(...named, "--yes")
  expect([done.exit, JSON.parse(done.out)]).toEqual([0, { queue: HELD, ...counts }])
  expect(JSON.parse((await cli(...named, "--dry-run")).out)).toMatchObject({ messages: 0 })
  expect(api.seen).toEqual([])
})

test("who may not resume by HTTP is told the way on the machine", async () => {
  using api = new FakeApi()
  api.error(`POST /v1/admin/queues/${HELD}/resume`, 403, "forbidden")
  const words = ["queue", "resume", HELD, "--url", api.url, "--api-key", KEY]
  const { err } = await onTerminal(words)
  expect(err).toContain(`belfry queue resume ${HELD} --data-dir`)
})

test("the monitor drops what a server on its machine holds, and never what another one does", async () => {
  const { data_dir } = await heldServer()
  const wrong: ServerRun = { data_dir, run_id: Bun.randomUUIDv7() }
  expect(await countHeldHere(wrong)).toBeUndefined()
  expect(dropHeldHere(wrong)).rejects.toMatchObject({ code: "conflict" })
  expect(await countHeldHere({ ...wrong, data_dir: join(data_dir, "none") })).toBeUndefined()
  using database = new Database(join(data_dir, "belfry.db"), { readonly: true })
  const held = database.query("SELECT count(*) AS n FROM messages WHERE owner = ?").get(HELD)
  expect(held).toEqual({ n: 2 })
})
