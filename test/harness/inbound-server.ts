import { eq, inArray } from "drizzle-orm"
import { resolver } from "../../src/core/dns"
import type { Workers } from "../../src/core/workers"
import { inboundProcess } from "../../src/inbound/arrived-mail"
import { type InboundServerParts, inboundHandlers } from "../../src/inbound/inbound-server"
import { processInbound } from "../../src/inbound/process"
import { type InboundRow, inboundEmails } from "../../src/inbound/tables"
import type { JobRow } from "../../src/jobs/jobs"
import { jobs } from "../../src/jobs/tables"
import { canonical, dotStuffed } from "../../src/lib/mail-text"
import type { Tx } from "../../src/store/store"
import { openTestMailServer } from "../smtp/open-mail-server"
import { emptyDns } from "./empty-dns"
import type { TestService } from "./service"
import { SmtpDialogue } from "./smtp-dialogue"

export const HOST = "mx.belfry.test"

interface MailInput {
  from?: string
  to: string | string[]
  /** Lines end with "\n" here. */
  raw: string | Uint8Array
  helo?: string
}

/** The server on port 25 of a test service, on a free port, and the job that reads what it took. */
export async function inboundServer(
  { store, parts }: TestService,
  options: Partial<InboundServerParts & { workers: Workers }> = {},
) {
  const { secrets, workers, inbound_blobs, blobs, rules, link_base } = parts
  const names = await emptyDns()
  const dns = resolver({ servers: [names.server] })
  const verdicts = { workers, dns, host: HOST }
  const server_parts = { store, secrets, inbound_blobs, hosts: [HOST], verdicts }
  const rules_of_port = { enforces_dmarc: () => false, bytes_per_hour: () => 1e12 }
  const handlers = inboundHandlers({ ...server_parts, ...rules_of_port, ...options })
  const it = await openTestMailServer({
    kind: "inbound",
    host: HOST,
    ...handlers,
    limits: { size: 26_214_400, per_address: 500 },
  })
  const handler = processInbound({
    ...{ store, secrets, workers, inbound_blobs, blobs, rules, link_base },
    verdicts: options.verdicts ?? verdicts,
    ...(options.workers && { workers: options.workers }),
  })

  /** The reply to the end of DATA, or the first refusal before. */
  async function offer({
    from = "ann@elsewhere.test",
    to,
    raw,
    helo = "elsewhere.test",
  }: MailInput) {
    using dialogue = await SmtpDialogue.open(it.server.port)
    const recipients = [to].flat().map((address) => `RCPT TO:<${address}>`)
    const lines = [`EHLO ${helo}`, `MAIL FROM:<${from}>`, ...recipients, "DATA"]
    for (const line of lines) {
      const reply = await dialogue.say(line)
      if (/^[45]/.test(reply)) return reply
    }
    dialogue.write(
      typeof raw === "string" ? dotStuffed(Buffer.from(canonical(raw))) : dotStuffed(raw),
    )
    return (await dialogue.reply()).lines.join(" ")
  }

  /** What its job makes of it, as the loop would do it. Answers with the retries that it asked for. */
  async function work(): Promise<string[]> {
    const waiting = eq(jobs.name, inboundProcess.name)
    const retries: string[] = []
    for (const job of await store.read.select().from(jobs).where(waiting)) {
      const result = await handler.run(job.payload as { ids: string[] }, job as JobRow)
      await store.tx(async (tx) => {
        await ended(tx, result)
        if (result.retry === undefined) await tx.delete(jobs).where(eq(jobs.id, job.id))
      })
      if (result.retry !== undefined) retries.push(result.retry)
    }
    return retries
  }

  /** Writes what came of a run, in the transaction that ends the job. */
  async function ended(tx: Tx, { done, end }: Awaited<ReturnType<typeof handler.run>>) {
    await done?.(tx)
    if (end) await handler.settle?.(tx, [end])
  }

  const rowsOf = async (ids: string[]): Promise<InboundRow[]> =>
    store.read
      .select()
      .from(inboundEmails)
      .where(inArray(inboundEmails.id, ids))
      .orderBy(inboundEmails.id)

  return {
    server: it.server,
    handler,
    offer,
    work,
    ended,
    rowsOf,
    /** Delivers, processes, and answers with the rows, one a recipient. */
    async receive(mail: MailInput): Promise<InboundRow[]> {
      const ids = idsIn(await offer(mail))
      await work()
      return rowsOf(ids)
    },
    async [Symbol.asyncDispose]() {
      await it[Symbol.asyncDispose]()
      names[Symbol.dispose]()
    },
  }
}

/** The ids in `2.0.0 Ok: queued as …`. Throws the reply where it is another one. */
export function idsIn(reply: string): string[] {
  if (!reply.startsWith("2.0.0")) throw new Error(`the mail was refused: ${reply}`)
  return reply.match(/[0-9a-f-]{36}/g) ?? []
}
