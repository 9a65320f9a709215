import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { openBlobs } from "../../src/core/blobs"
import { openSecrets } from "../../src/core/secrets"
import { openWorkers } from "../../src/core/workers"
import { emailChannel } from "../../src/emails/channel"
import type { EmailProvider } from "../../src/emails/providers/provider"
import { keptBytes } from "../../src/emails/submitted"
import * as pipeline from "../../src/messages/pipeline"
import {
  type Envelope,
  messageFiles,
  messageRaws,
  messages,
  type NewMessage,
} from "../../src/messages/tables"
import { rotateMasterKey } from "../../src/operations/master-key"
import type { Outcome } from "../../src/providers/provider"
import { movableClock } from "../harness/clock"
import { noTemplates } from "../harness/no-templates"
import { testPauses } from "../harness/pauses"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"
import { testAddress, testLinks } from "../harness/unsubscribe"
import { byHand } from "../messages/by-hand"
import { letter, outcome, read, told } from "../messages/letters"

quietLog()
const clock = movableClock()

const TO = "to@example.test"
const LONG = { html: null, text: "Dong, dong, dong. ".repeat(40), headers: {} }

/** One accepted message, delivered by hand through the channel of mail. */
const oneMail = (...script: Word[]) => oneMailOf({ content: LONG }, ...script)

type Word = "retry" | "delivered"

async function oneMailOf(given: Partial<NewMessage>, ...script: Word[]) {
  const base = await testStore()
  const { store, folder } = base
  const workers = openWorkers({ size: 1 })
  const sent: { raw: string; kept_before: boolean }[] = []
  const kept = async () => {
    const [row] = await store.read.select().from(messageRaws)
    return row?.raw
  }
  const provider: EmailProvider = {
    name: "smtp",
    schedule: () => 60,
    close: async () => {},
    async send({ raw }): Promise<Outcome> {
      sent.push({ raw: Buffer.from(raw).toString(), kept_before: (await kept()) !== undefined })
      return outcome([told(TO, { status: script.shift() ?? "delivered" })])
    },
  }
  const parts = {
    store,
    secrets: openSecrets({ data_dir: folder, master_key: null }),
    workers,
    blobs: openBlobs(`${folder}/blobs`),
    provider,
    rules: {
      sending_domains: new Set(["example.test"]),
      unsubscribe: testLinks,
      publicAddress: testAddress,
      templates: noTemplates(store.read),
    },
    sandbox: undefined,
    queues: testPauses(store),
    concurrency: 1,
  }
  /** A process of its own, with places on the wire of its own. */
  const life = (owner: string) => {
    const email = emailChannel(parts)
    const channels = { email, push: email, sms: email, in_app: email }
    return byHand(store, channels, { owner })
  }
  const message = letter(given)
  await store.tx((tx) => pipeline.accept(tx, [message]))
  return {
    ...base,
    id: message.id,
    sent,
    kept,
    hand: life("first"),
    life,
    keep: (raw: Buffer) => store.tx((tx) => tx.update(messageRaws).set({ raw })),
    blobs: parts.blobs,
    parts,
    /** What is composed is another mail from now on. */
    rename: (subject: string) =>
      store.tx((tx) => tx.update(messages).set({ subject }).where(eq(messages.id, message.id))),
    async [Symbol.asyncDispose]() {
      await workers.close()
      await base[Symbol.asyncDispose]()
    },
  }
}

/** Tried twice, the second time as `between` left it. */
async function triedTwice(given: Partial<NewMessage>, between: (mail: Mail) => Promise<unknown>) {
  const mail = await oneMailOf(given, "retry", "delivered")
  await mail.hand.work(await mail.hand.claimOne())
  await between(mail)
  clock.advance({ seconds: 61 })
  await mail.hand.work(await mail.hand.claimOne())
  return mail
}

type Mail = Awaited<ReturnType<typeof oneMailOf>>

test.each([LONG, { ...LONG, text: "Dong, dong, dong.\r\n".repeat(70_000) }])(
  "what is kept of a mail, however long, is no copy of it, and the same bytes leave again",
  async (content) => {
    let kept: Buffer | undefined
    await using mail = await triedTwice({ content }, async (one) => {
      kept = await one.kept()
    })
    expect(kept?.length).toBeLessThan(50)
    expect(mail.sent.map(({ kept_before }) => kept_before)).toEqual([false, true])
    expect(mail.sent[1]?.raw === mail.sent[0]?.raw).toBe(true)
    expect(await mail.kept()).toEqual(kept)
    expect(await mail.store.read.select().from(messageFiles)).toEqual([])
  },
)

test("no other bytes leave where these cannot be made again: the message waits until they can", async () => {
  await using mail = await triedTwice({ content: LONG }, (one) => one.rename("Another subject"))
  expect(mail.sent).toHaveLength(1)
  expect(await read(mail.store.read, mail.id)).toMatchObject({ status: "queued" })
  await mail.rename(letter({}).subject ?? "")
  clock.advance({ seconds: 3600 })
  await mail.hand.work(await mail.hand.claimOne())
  expect(mail.sent[1]?.raw).toBe(mail.sent[0]?.raw ?? "")
})

test("links lead where they led first, whatever became of address, mail host and master key", async () => {
  const kind = { track: { opens: true, clicks: true }, unsubscribe: "token" }
  const { envelope } = letter({})
  const html = '<p>Dong</p><a href="https://shop.test">Shop</a>'
  const content = { ...LONG, html }
  await using mail = await triedTwice(
    { content, envelope: { ...envelope, ...kind } as Envelope },
    async ({ parts, folder }) => {
      parts.rules.publicAddress = async () => "https://other.test"
      parts.rules.unsubscribe = testLinks.at(null)
      for (const _ of ["the key of before", "the one before that"]) {
        await rotateMasterKey(parts, { new_key: null, end_links: true })
        parts.secrets = openSecrets({ data_dir: folder, master_key: null })
      }
    },
  )
  expect(mail.sent[0]?.raw).toContain("https://belfry.test/t/c/")
  expect(mail.sent[1]?.raw).toBe(mail.sent[0]?.raw ?? "")
})

test("the recipe names the master key of the marks, where another takes its place while the mail is composed", async () => {
  const text = LONG.text.repeat(100) // a worker composes it
  await using mail = await oneMailOf({ content: { ...LONG, text } }, "retry", "delivered")
  const { parts } = mail
  const workers = { run: parts.workers.run.bind(parts.workers), close: async () => {} }
  parts.workers = {
    ...workers,
    async run(...given) {
      parts.workers = workers
      await rotateMasterKey(parts, { new_key: null, end_links: true })
      return workers.run(...given)
    },
  }
  await mail.hand.work(await mail.hand.claimOne())
  clock.advance({ seconds: 61 })
  await mail.hand.work(await mail.hand.claimOne())
  expect(mail.sent[1]?.raw === mail.sent[0]?.raw).toBe(true)
})

test("a recipe of a version that is not known here makes nothing leave", async () => {
  await using mail = await triedTwice({ content: LONG }, async (one) => {
    const raw = (await one.kept()) ?? Buffer.of()
    await one.keep(Buffer.from(raw.fill(99, 1, 2)))
  })
  expect(mail.sent).toHaveLength(1)
})

test("after a crash before the outcome was written the same bytes are composed again", async () => {
  await using mail = await oneMail("delivered", "delivered")
  await mail.hand.tried(await mail.hand.claimOne())
  expect(await mail.kept()).toBeUndefined()

  await pipeline.messageRows.freeAll(mail.store, "the next life")
  expect(await read(mail.store.read, mail.id)).toMatchObject({ status: "queued", attempts: 0 })
  const next = mail.life("the next life")
  const job = await next.claimOne()
  expect(job.attempt).toBe(1)
  await next.work(job)
  expect(mail.sent).toHaveLength(2)
  expect(mail.sent[1]?.raw).toBe(mail.sent[0]?.raw ?? "")
  expect(await mail.kept()).toBeDefined()
  expect(await read(mail.store.read, mail.id)).toMatchObject({
    status: "delivered",
    attempts: 1,
  })
})

const LEFT = Buffer.from(`From: me@example.test\r\n\r\n${"As it left first.\r\n".repeat(50)}`)

test("what older versions kept leaves at the next attempt, and stays as it is", async () => {
  const file = Buffer.from(`file:${new Bun.CryptoHasher("sha256").update(LEFT).digest("hex")}`)
  for (const form of [LEFT, Bun.zstdCompressSync(LEFT), file]) {
    await using mail = await triedTwice({ content: LONG }, async (one) => {
      await one.blobs.put(LEFT)
      await one.keep(form)
    })
    expect(mail.sent[1]?.raw).toBe(LEFT.toString())
    expect(await mail.kept()).toEqual(form)
  }
})

test("of bytes in a file older versions kept what comes before them, or what tracking changed", async () => {
  await using mail = await oneMail()
  const { sha256, size } = await mail.blobs.put(LEFT)
  const envelope = { submitted: { sha256, size, wide: false } } as Envelope
  const fields = Buffer.from("X-Svc-Email-Id: 1\r\n")
  const whole = Buffer.concat([fields, LEFT])
  expect((await keptBytes({ envelope }, fields, mail.blobs)).toString()).toBe(whole.toString())
  const length = Buffer.alloc(8)
  length.writeBigUInt64BE(BigInt(LEFT.length))
  const row = Buffer.concat([length, fields])
  const tracked = { ...envelope, track: { opens: true, clicks: false } }
  expect((await keptBytes({ envelope: tracked }, row, mail.blobs)).toString()).toBe(`${whole}`)
})
