import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { openBlobs } from "../../src/core/blobs"
import { openSecrets } from "../../src/core/secrets"
import { openWorkers } from "../../src/core/workers"
import { emailChannel } from "../../src/emails/channel"
import type { EmailProvider } from "../../src/emails/providers/provider"
import { unpack } from "../../src/lib/compression"
import * as pipeline from "../../src/messages/pipeline"
import { messageFiles, messageRaws, messages } from "../../src/messages/tables"
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
const oneMail = (...script: Word[]) => oneMailOf(LONG, ...script)

type Word = "retry" | "delivered"

async function oneMailOf(content: typeof LONG, ...script: Word[]) {
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
  const message = letter({ content })
  await store.tx((tx) => pipeline.accept(tx, [message]))
  return {
    ...base,
    id: message.id,
    sent,
    kept,
    hand: life("first"),
    life,
    /** What would be composed anew would be another mail from now on. */
    rename: (subject: string) =>
      store.tx((tx) => tx.update(messages).set({ subject }).where(eq(messages.id, message.id))),
    async [Symbol.asyncDispose]() {
      await workers.close()
      await base[Symbol.asyncDispose]()
    },
  }
}

test("the bytes are kept with the first outcome, a deferral too, and leave again as they are", async () => {
  await using mail = await oneMail("retry", "delivered")
  await mail.hand.work(await mail.hand.claimOne())
  const packed = await mail.kept()
  expect(packed?.length).toBeLessThan(mail.sent[0]?.raw.length ?? 0)
  expect(Buffer.from(unpack(packed ?? Buffer.of())).toString()).toBe(mail.sent[0]?.raw ?? "")

  await mail.rename("Another subject")
  clock.advance({ seconds: 61 })
  await mail.hand.work(await mail.hand.claimOne())
  expect(mail.sent.map(({ kept_before }) => kept_before)).toEqual([false, true])
  expect(mail.sent[1]?.raw).toBe(mail.sent[0]?.raw ?? "")
  expect(await mail.kept()).toEqual(packed)
})

test("bytes of more than a megabyte are kept as a file, which the row names", async () => {
  const text = "Dong, dong, dong.\r\n".repeat(70_000)
  await using mail = await oneMailOf({ ...LONG, text }, "retry", "delivered")
  await mail.hand.work(await mail.hand.claimOne())
  const row = await mail.kept()
  expect(row?.length).toBeLessThan(100)
  const [file] = await mail.store.read.select().from(messageFiles)
  expect(row?.toString()).toBe(`file:${file?.sha256}`)
  expect(file?.message_id).toBe(mail.id)

  await mail.rename("Another subject")
  clock.advance({ seconds: 61 })
  await mail.hand.work(await mail.hand.claimOne())
  expect(mail.sent[1]?.raw === mail.sent[0]?.raw).toBe(true)
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

test("what an earlier version kept as it is leaves at the next attempt, and stays as it is", async () => {
  await using mail = await oneMail("delivered")
  const old = Buffer.from("From: me@example.test\r\nSubject: as it left first\r\n\r\nDong.\r\n")
  await mail.store.tx(async (tx) => {
    await tx.insert(messageRaws).values({ message_id: mail.id, raw: old })
    await tx.update(messages).set({ attempt: 1 }).where(eq(messages.id, mail.id))
  })
  await mail.hand.work(await mail.hand.claimOne())
  expect(mail.sent.map(({ raw }) => raw)).toEqual([old.toString()])
  expect(Buffer.compare((await mail.kept()) ?? Buffer.of(), old)).toBe(0)
})
