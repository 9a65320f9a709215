import { channelTable } from "../../src/channels"
import type { Secrets } from "../../src/core/secrets"
import { systemMail } from "../../src/emails/instance-mail"
import { mailbox } from "../../src/emails/providers/mailbox"
import { openMailbox } from "../../src/mailbox/smtp-server"
import { messages } from "../../src/messages/tables"
import { type AdminOrder, administer } from "../../src/operations/admin"
import type { TestService } from "../harness/service"
import { engine } from "../harness/store"
import { WorkLoops, workOf } from "../harness/work-loops"

/** Mail of the instance goes to the embedded mailbox, as on a box without a relay. */
export const to_mailbox = (secrets: Secrets) =>
  systemMail(secrets, { system_from: null, to_mailbox: true })

/** Works off the whole queue, delivering to the embedded mailbox. */
export async function workOff({ store, parts }: TestService, fallback?: string) {
  const server = await openMailbox({
    store,
    ...{ secrets: parts.secrets, blobs: parts.blobs },
    listen: { host: "127.0.0.1", port: 0 },
    fallback_project: () => fallback,
    complained: async () => {},
  })
  const provider = mailbox({ port: server.port })
  const work = workOf(
    parts,
    channelTable({ ...parts, provider, sandbox: provider, concurrency: 4 }),
    parts,
  )
  const alone = engine === "sqlite"
  const loop = new WorkLoops({ store, work, concurrency: 4, lease_ms: 30_000, alone })
  await loop.start()
  const isOver = async () => {
    const sent = await store.read.select().from(messages)
    return sent.length > 0 && sent.every(({ status }) => status === "delivered")
  }
  while (!(await isOver())) await Bun.sleep(5)
  await loop.stop(5_000)
  await provider.close()
  await server.close()
}

/** Gives an order as somebody at the machine itself. */
export const order = <Data>({ parts }: TestService, what: AdminOrder): Promise<Data> =>
  administer(parts, what) as Promise<Data>

/** The newest mail of the instance to this address, its lines put together again. */
export async function systemMailTo(service: TestService, to: string): Promise<string> {
  const filter = { operation: "system_mails", to, limit: 1 } as const
  const [newest] = await order<{ id: string }[]>(service, filter)
  const id = newest?.id ?? ""
  const { raw } = await order<{ raw: string }>(service, { operation: "system_mail", id })
  return Buffer.from(raw, "base64").toString().replaceAll("=\r\n", "")
}
