import { afterAll, expect, test } from "bun:test"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { eq, ne } from "drizzle-orm"
import { inboundEmails } from "../../src/inbound/tables"
import { jobs } from "../../src/jobs/tables"
import { BOMBS } from "../fixtures/reports/bombs"
import { mostHeld } from "../harness/held"
import { addReceivingDomain } from "../harness/inbound-rows"
import { inboundServer } from "../harness/inbound-server"
import { root } from "../harness/migrations"
import { quietLog } from "../harness/quiet"
import { sharedService } from "../harness/shared-service"
import { sizes } from "../harness/sizes"
import { plainLogin, SmtpDialogue } from "../harness/smtp-dialogue"
import { openSubmission } from "../harness/submission"
import type { BombRun } from "./send-bombs"

quietLog()

const service = await sharedService()
const { store } = service
const inbound = await inboundServer(service)
const submission = await openSubmission(service)
const folder = mkdtempSync(join(tmpdir(), "belfry-bombs-"))
afterAll(async () => {
  await inbound[Symbol.asyncDispose]()
  await submission[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

const project = await service.project()
const domain = await addReceivingDomain(store, project)
const NAMES = Object.keys(BOMBS).filter((_, at) => at % sizes.bomb_steps === 0)

/** The replies, by the name of the mail. */
async function sendBombs(run: BombRun): Promise<Map<string, string>> {
  const file = join(folder, `${run.port}.json`)
  await Bun.write(file, JSON.stringify(run))
  const cmd = [process.execPath, join(root, "test/inbound/send-bombs.ts"), file]
  const { env } = process // with the engine of this process
  const child = Bun.spawn({ cmd, cwd: root, env, stdio: ["ignore", "pipe", "pipe"] })
  const [output, errors] = await Promise.all([child.stdout.text(), child.stderr.text()])
  expect(await child.exited, errors).toBe(0)
  const lines = output
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))
  return new Map(lines.map(({ name, reply }) => [name, reply]))
}

/** What another client has to wait for, while `work` runs. Its replies. */
async function beside(work: Promise<unknown>, say: () => Promise<string>): Promise<string[]> {
  let is_running = true
  const ended = work.finally(() => {
    is_running = false
  })
  const replies: string[] = []
  while (is_running) {
    replies.push(await say())
    await Bun.sleep(20)
  }
  await ended
  return replies
}

/** How long the main thread is held is said, and not judged: it differs from machine to machine. */
async function measured<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
  const result = Promise.withResolvers<Result>()
  const held = await mostHeld(() => work().then(result.resolve))
  console.log(`${what}: the main thread was busy for ${held.toFixed(1)} ms at most`)
  return result.promise
}

test("mails that were made to hurt arrive on port 25: each is answered and read, others go on", async () => {
  const sending = sendBombs({
    port: inbound.server.port,
    to: `any@${domain}`,
    key: null,
    names: NAMES,
  })
  using good = await SmtpDialogue.open(inbound.server.port)
  await good.say("EHLO good.test")
  const replies = await measured("bombs on port 25", () =>
    beside(sending, async () => {
      await good.talk("MAIL FROM:<ann@good.test>", `RCPT TO:<good@${domain}>`, "DATA")
      good.write("From: ann@good.test\r\nSubject: fine\r\n\r\nhello\r\n.\r\n")
      return (await good.reply()).text
    }),
  )
  expect(replies.filter((reply) => !reply.startsWith("250 2.0.0 "))).toEqual([])
  const answers = await sending
  expect([...answers.keys()]).toEqual(NAMES)
  const kinds = /^(?:250 2\.0\.0 |550 5\.5\.2 |552 5\.3\.4 |554 5\.6\.0 )/
  expect([...answers].filter(([, reply]) => !kinds.test(reply))).toEqual([])
  const taken = [...answers.values()].filter((reply) => reply.startsWith("250"))
  expect(taken.length).toBeGreaterThan(NAMES.length / 2)

  await measured("reading them", async () => {
    expect(await inbound.work()).toEqual([])
  })
  const unread = await store.read
    .select({ id: inboundEmails.id })
    .from(inboundEmails)
    .where(ne(inboundEmails.status, "processed"))
  expect(unread).toEqual([])
  const rows = await store.read.select().from(inboundEmails)
  expect(rows).toHaveLength(replies.length + taken.length)
  const hurt = rows.filter(({ to_email }) => to_email.startsWith("any@"))
  expect(hurt.filter(({ parse_error }) => parse_error).length).toBeGreaterThanOrEqual(
    4 / sizes.bomb_steps,
  )
  const fine = rows.filter(({ to_email }) => to_email.startsWith("good@"))
  expect(fine.filter((row) => row.parse_error || row.from_email !== "ann@good.test")).toEqual([])
})

test("the same mails submitted: each is answered, others go on", async () => {
  const { port } = submission
  const to = "ann@example.test"
  const sending = sendBombs({ port, to, key: project.key, names: NAMES })
  const other = await service.project()
  using good = await SmtpDialogue.open(port)
  await good.say("EHLO good.test")
  await good.starttls()
  await good.talk("EHLO good.test", plainLogin("svc", other.key))
  const replies = await measured("bombs on port 587", () =>
    beside(sending, async () => {
      await good.talk("MAIL FROM:<bell@example.test>", `RCPT TO:<${to}>`, "DATA")
      good.write("From: bell@example.test\r\nSubject: fine\r\n\r\nhello\r\n.\r\n")
      await Bun.sleep(200) // so that the requests of a minute suffice
      return (await good.reply()).text
    }),
  )
  expect(replies.filter((reply) => !/^(?:250 2\.0\.0|451 4\.7\.1) /.test(reply))).toEqual([])
  const answers = await sending
  const kinds = /^(?:550 5\.5\.2 |550 5\.7\.1 |552 5\.3\.4 |554 5\.6\.0 )/
  expect([...answers].filter(([, reply]) => !kinds.test(reply))).toEqual([])
  const waiting = eq(jobs.project_id, project.project_id)
  expect(await store.read.select().from(jobs).where(waiting)).toEqual([])
})
