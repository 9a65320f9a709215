import { now } from "../../src/core/time"
import { openMailServer } from "../../src/smtp/mail-servers"
import { type MailSession, SmtpReplyError } from "../../src/smtp/mail-session"
import type { SubmissionIdentity } from "../../src/smtp/submission"
import { submissionHandlers } from "../../src/smtp/submission"
import { cert, key as tls_key } from "../core/certificate"
import type { TestService } from "./service"

export type TestSession = MailSession<SubmissionIdentity>

/** A connection as the server hands it to its handlers. */
export const session = (address = "192.0.2.7"): TestSession => ({
  id: "smtp_test",
  address,
  helo: "client.test",
  tls: { version: "TLSv1.3", cipher: "TLS_AES_256_GCM_SHA384" },
  identity: undefined,
})

interface Transaction {
  from?: string
  to: string | string[]
  raw: string | Uint8Array
  smtputf8?: boolean
}

/** The handlers of the submission server on a service, and dialogues with them without a socket. */
export function testSubmission({ parts }: Pick<TestService, "parts">) {
  const handlers = submissionHandlers({ ...parts, host: "mx.belfry.test" })

  const login = async (key: string, one = session(), username = "svc") => {
    one.identity = await handlers.authenticate({ username, password: key }, one)
    return one
  }

  /** MAIL, RCPT and DATA; the text behind the 250. */
  const submit = async (one: TestSession, mail: Transaction) => {
    const { from = "bounces@client.test", to, raw, smtputf8 = false } = mail
    await handlers.onSender({ address: from, size: undefined }, one)
    const recipients = [to].flat()
    for (const address of recipients) await handlers.onRecipient(address, one)
    const bytes = typeof raw === "string" ? Buffer.from(raw.replaceAll("\n", "\r\n")) : raw
    const received = { raw: new Uint8Array(bytes), from, to: recipients, smtputf8 }
    return handlers.onMail({ ...received, eight_bit: false, received_at: now() }, one)
  }

  return { handlers, login, submit }
}

/** The submission server on two free ports of the loopback; the second begins with TLS. */
export async function openSubmission(service: Pick<TestService, "parts">) {
  const { handlers } = testSubmission(service)
  const server = await openMailServer({
    ...handlers,
    kind: "submission",
    host: "mx.belfry.test",
    listen: { host: "127.0.0.1", port: 0 },
    implicit: { host: "127.0.0.1", port: 0 },
    certificate: { current: () => ({ key: tls_key, cert }), onChange: () => () => {} },
    limits: { size: 15_728_640, recipients: 100, connections: 500, per_address: 20 },
    trusted_proxies: () => [],
    isReady: () => undefined,
  })
  const { port, implicit_port } = server
  return {
    port,
    implicit_port: implicit_port ?? 0,
    [Symbol.asyncDispose]: () => server.close(0),
  }
}

/** The ids that the 250 names. */
export const idsOf = (text: string): string[] => {
  if (!text.startsWith("2.0.0 Ok: queued as ")) throw new Error(text)
  return text.slice("2.0.0 Ok: queued as ".length).split(" ")
}

/** `535 5.7.8 unauthorized`, and whether the session ends; throws what is no reply. */
export async function replyOf(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    (value) => new Error(`no refusal: ${JSON.stringify(value)}`),
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof SmtpReplyError)) throw error
  const { code, enhanced, message, close } = error
  const [, api_code] = /^([a-z_]+): [ -~]+ \(req_[0-9a-f]{32}\)$/.exec(message) ?? []
  if (api_code === undefined) throw new Error(`not in the form of the contract: ${message}`)
  return `${code} ${enhanced} ${api_code}${close ? ", and closes" : ""}`
}
