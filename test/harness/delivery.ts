import { and, inArray, isNull, lte, or } from "drizzle-orm"
import { channelTable } from "../../src/channels"
import { now, sleep } from "../../src/core/time"
import type { EmailProvider, OutgoingMail } from "../../src/emails/providers/provider"
import type { Channels } from "../../src/messages/pipeline"
import { messages } from "../../src/messages/tables"
import type { RecipientOutcome } from "../../src/providers/provider"
import { type OutgoingText, type SmsProvider, textOutcome } from "../../src/sms/providers/provider"
import type { TestService } from "./service"
import { engine } from "./store"
import { WorkLoops, workOf } from "./work-loops"

/**
 * Runs the queue until every message that is due is settled, or until `isOver`. Resolves with what the
 * provider was handed.
 */
export async function deliverAll(
  { parts }: TestService,
  answer = delivered,
  isOver?: () => Promise<boolean>,
) {
  const handed: OutgoingMail[] = []
  const provider: EmailProvider = {
    name: "mailbox",
    schedule: () => undefined,
    send: async (mail) => {
      handed.push(mail)
      const [first, ...others] = mail.to.map(answer)
      if (!first) throw new Error("a mail without recipients was handed over")
      const transcript = ["S: 220 ready"]
      return { ...first, others, transcript, provider: "mailbox", schedule: provider.schedule }
    },
    close: async () => {},
  }
  await deliverBy(parts, provider, isOver)
  return handed
}

/** As `deliverAll`, of texts: each is sent, or refused. Resolves with what the provider was handed. */
export async function deliverTexts(
  { parts }: TestService,
  meaning: "sent" | "refused" = "sent",
  isOver?: () => Promise<boolean>,
) {
  const handed: OutgoingText[] = []
  const provider: SmsProvider = {
    name: "log",
    schedule: () => undefined,
    send: async (text) => {
      handed.push(text)
      return textOutcome("log", text, { meaning, said: null }, provider.schedule)
    },
    close: async () => {},
  }
  const sms = { ...parts, provider, sandbox: provider, concurrency: 4 }
  await runChannels(parts, channelTable(noEmail(parts), { sms }), isOver)
  return handed
}

const noEmail = (parts: TestService["parts"]) => {
  const provider: EmailProvider = {
    name: "mailbox",
    schedule: () => undefined,
    send: () => Promise.reject(new Error("only texts are sent here")),
    close: async () => {},
  }
  return { ...parts, provider, sandbox: provider, concurrency: 4 }
}

/** Runs the queue until every message that is due is settled, or until `isOver`, by this provider. */
export const deliverBy = (
  parts: TestService["parts"],
  provider: EmailProvider,
  isOver?: () => Promise<boolean>,
) =>
  runChannels(
    parts,
    channelTable({ ...parts, provider, sandbox: provider, concurrency: 4 }),
    isOver,
  )

async function runChannels(
  parts: TestService["parts"],
  channels: Channels,
  isOver: () => Promise<boolean> = async () => !(await isAnyOpen(parts)),
) {
  const { store } = parts
  const loop = new WorkLoops({
    store,
    work: workOf(parts, channels, parts),
    concurrency: 4,
    lease_ms: 30_000,
    alone: engine === "sqlite",
  })
  await loop.start()
  try {
    while (!(await isOver())) await sleep(5)
  } finally {
    await loop.stop(5_000)
  }
}

/** Whether a message is due that has not come to its end. */
export async function isAnyOpen({ store }: Pick<TestService["parts"], "store">): Promise<boolean> {
  const { scheduled_at } = messages
  const open = inArray(messages.status, ["queued", "sending"])
  const due = and(open, or(isNull(scheduled_at), lte(scheduled_at, now())))
  const rows = await store.read.select({ id: messages.id }).from(messages).where(due).limit(1)
  return rows.length > 0
}

const reply: RecipientOutcome["reply"] = {
  smtp_code: 250,
  enhanced_code: "2.0.0",
  response: "250 2.0.0 Kept",
  mx: "127.0.0.1",
  tls: null,
}

export const delivered = (email: string): RecipientOutcome => ({
  address: email,
  status: "delivered",
  reason: null,
  bounce_subtype: null,
  code: null,
  reply,
})

export const bounced = (email: string): RecipientOutcome => ({
  ...delivered(email),
  status: "bounced",
  reason: "550 5.1.1 No such user",
  bounce_subtype: "NoEmail",
  reply: { ...reply, smtp_code: 550, enhanced_code: "5.1.1", response: "550 5.1.1 No such user" },
})
