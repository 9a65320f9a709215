import { Type as t } from "@sinclair/typebox"
import { oneOf } from "../../http/field-schemas"
import type { RetrySchedule } from "../../jobs/work-item"
import { domainOf } from "../../lib/address"
import {
  type ProviderDescriptor,
  ProviderError,
  type ReturnPathAnswer,
} from "../../providers/provider"
import { outcomeOf, type ReplyPolicy, relayFaultOf, relayPolicy } from "../smtp/outcome"
import type { PoolLimits } from "../smtp/pool"
import { SmtpRefusal, type Timeouts } from "../smtp/session"
import { attemptRelay, reportsTo, type SmtpAttemptResult } from "../smtp/smtp-attempt"
import { SmtpClient } from "../smtp/smtp-client"
import { isUntrusted, SmtpConnectionError, type SmtpReply, TRUST_ADVICE } from "../smtp/wire"
import {
  type EmailContext,
  type EmailProvider,
  type OutgoingMail,
  smtpSchedule,
  type UnsentMail,
} from "./provider"
import { Remembered } from "./remembered"

const TIMEOUTS: Timeouts = {
  connect: 10_000,
  greeting: 10_000,
  reply: 20_000,
  accepted: 20_000,
}

const LIMITS: PoolLimits = { max_connections: 20, idle: 30_000, queue: 60_000 }

export interface SmtpOptions {
  host: string
  port: number
  /** Logs in where it is given, with PLAIN or LOGIN. */
  username?: string | undefined
  password?: string | undefined
  tls: "starttls" | "implicit" | "none"
  /** The name the certificate must be good for, where it is not `host`. */
  servername?: string | undefined
  /** As in SmtpServer: checks where a name given by a tenant leads. */
  resolveHost?: (() => Promise<string>) | undefined
  /** PEM of the authority to trust instead of the system's. */
  ca?: string | undefined
  schedule?: RetrySchedule
  timeouts?: Partial<Timeouts>
  limits?: Partial<PoolLimits>
}

/**
 * Any relay that speaks SMTP (RFC 5321), over connections that stay warm. `send` rejects
 * only when no connection became free in time, and says `sent` only for a message that the server took with its reply after DATA. A reply that
 * got lost is `retry`: twice is better than never.
 */
export const smtp = (options: SmtpOptions): EmailProvider => relay("smtp", "sent", options)

/** `accepted` is the status of a message that the server accepted. */
export function relay(
  name: EmailProvider["name"],
  accepted: ReplyPolicy["accepted"],
  { schedule = smtpSchedule(), timeouts, limits, ...server }: SmtpOptions,
): EmailProvider {
  const patience = { ...TIMEOUTS, ...timeouts }
  const client = new SmtpClient({ ...server, timeouts: patience }, { ...LIMITS, ...limits })
  const target = { host: server.host, client, policy: relayPolicy(accepted) }
  const return_paths = new ReturnPaths()
  return {
    name,
    schedule,
    makes_mail: true,
    close: () => client.close(),
    check: () => checked(client, server),
    async checkReturnPath(address) {
      const host = domainOf(address)
      return_paths.forget(host)
      const { code, text } = await faultless(client.askSender(address))
      return { host, refusal: code < 400 ? null : text }
    },
    async send(mail: UnsentMail) {
      const transcript: string[] = []
      const ask = (from: string) => {
        const wants_reports = accepted === "sent" && from !== mail.from
        return attemptRelay(target, { ...mail, from, wants_reports }, transcript)
      }
      const { results, return_path } = await return_paths.attempt(mail, transcript, ask)
      const outcomes = results.map((one, index) => ({ ...one, address: mail.to[index] ?? "" }))
      return { ...outcomeOf(outcomes, { provider: name, schedule, transcript }), return_path }
    },
  }
}

/** A new connection, so that what has become of the credentials shows. */
async function checked(client: SmtpClient, { host, port, username }: SmtpOptions): Promise<string> {
  const { tls, could_be_safe } = await faultless(client.check())
  const login = username === undefined ? "without a login" : "and it accepted the login"
  const advice = could_be_safe ? " It offers STARTTLS. Set tls to starttls." : ""
  return `${host}:${port} answers over ${tls ?? "an open connection"}, ${login}.${advice}`
}

/** Rejects with ProviderError. */
const faultless = <Result>(asked: Promise<Result>): Promise<Result> =>
  asked.catch((error: Error) => {
    throw providerError(error)
  })

function providerError(error: Error): ProviderError {
  const { message } = error
  const said = error instanceof SmtpRefusal ? `${error.phase}: ${message}` : message
  const is_tls = error instanceof SmtpConnectionError && error.kind === "tls"
  const words = is_tls && isUntrusted(message) ? `${said}. ${TRUST_ADVICE}` : said
  return new ProviderError(relayFaultOf(error) ?? "infrastructure", words)
}

const line = (maxLength: number) =>
  t.String({ minLength: 1, maxLength, pattern: "^[^\\u0000-\\u001f\\u007f]*$" })

type SmtpAccess = Pick<SmtpOptions, "host" | "port" | "username" | "password" | "tls">

export const smtpProvider: ProviderDescriptor<SmtpAccess, EmailContext, OutgoingMail> = {
  name: "smtp",
  channel: "email",
  about: "an SMTP relay",
  reports: "`sent` when the relay took it",
  example: "--host smtp.example.com --username apikey --secret-stdin < secret",
  credentials: {
    host: {
      schema: t.String({ pattern: "^[A-Za-z0-9_.:-]+$", maxLength: 253 }),
      about: "host name of the relay",
      is_public: true,
    },
    port: {
      schema: t.Integer({ minimum: 1, maximum: 65_535 }),
      about: "port of the relay",
      fallback: 587,
    },
    username: { schema: t.Optional(line(255)), about: "user name", value: "name" },
    password: {
      schema: t.Optional(line(1024)),
      about: "password",
      secret: true,
      asked_with: "username",
    },
    tls: {
      schema: oneOf("starttls", "implicit", "none"),
      about: "starttls, implicit or none",
      value: "mode",
      fallback: "starttls",
    },
  },
  validate({ username, password }) {
    if ((username === undefined) === (password === undefined)) return undefined
    const field = username === undefined ? "username" : "password"
    const message = "Give username and password together, or neither."
    return { field, code: "required", message }
  },
  destination: ({ host, port }) => ({ field: "host", host, port }),
  spf: ({ host }, names) =>
    typeof host === "string" && host !== "" ? [names.of(host)] : undefined,
  fromSettings: (settings) => ({
    host: settings["providers.smtp.host"] ?? "",
    port: settings["providers.smtp.port"],
    username: settings["providers.smtp.username"] ?? undefined,
    password: settings["providers.smtp.password"] ?? undefined,
    tls: settings["providers.smtp.tls"],
  }),
  banner: ({ host, port }) => `relay ${host}:${port}`,
  open: (access, { settings, schedule }, { reach }) =>
    smtp({
      ...access,
      ...(reach && { resolveHost: () => reach(access.host, access.port) }),
      // As many as there are deliveries at once: none of them should have to wait for a connection.
      limits: { max_connections: settings["delivery.concurrency"] },
      schedule,
    }),
}

/** For so long a relay that refused our return path gets the author's address without being asked again. */
const KNOWN_MS = 24 * 3_600_000

/** Hosts of return paths that are remembered. Further ones are asked again, which costs one command. */
const MOST_HOSTS = 1_000

/**
 * The envelope sender that a relay takes, by the host of our return path. A relay that refuses ours gets the author's
 * address in the same attempt. Many say so at RCPT or after the message, in words of their own. So until a relay has
 * taken a mail with ours, every refusal for good is taken for one of the return path: with the author's
 * address it shows whether it was.
 */
class ReturnPaths {
  readonly #refused = new Remembered<true>(KNOWN_MS, MOST_HOSTS)
  readonly #taken = new Remembered<true>(KNOWN_MS, MOST_HOSTS)

  async attempt(
    mail: UnsentMail,
    transcript: string[],
    ask: (from: string) => Promise<SmtpAttemptResult>,
  ): Promise<SmtpAttemptResult & { return_path?: ReturnPathAnswer }> {
    const ours = await reportsTo(mail)
    const host = domainOf(ours)
    if (ours === mail.from || this.#refused.has(host)) return ask(mail.from)
    const first = await ask(ours)
    if (isTaken(first)) {
      void this.#taken.get(host, async () => true)
      return { ...first, return_path: { host, refusal: null } }
    }
    const refusal = refusalOf(first, ours, this.#taken.has(host))
    if (!refusal) return first
    transcript.push("* trying the author's address as envelope sender")
    const second = await ask(mail.from)
    if (!isTaken(second)) return second
    void this.#refused.get(host, async () => true)
    return { ...second, return_path: { host, refusal: refusal.text } }
  }

  forget(host: string): void {
    this.#refused.forget(host)
  }
}

const isTaken = ({ results }: SmtpAttemptResult) =>
  results.some(({ status }) => status === "sent" || status === "delivered")

/** The reply that may be about the return path; undefined where it is about something else. */
function refusalOf(
  { refused }: SmtpAttemptResult,
  return_path: string,
  is_proven: boolean,
): SmtpReply | undefined {
  if (!refused) return undefined
  const { is_at_mail, replies } = refused
  const mayBe = (reply: SmtpReply) =>
    speaksOfSender(reply, return_path) || (reply.code >= 500 && (is_at_mail || !is_proven))
  return replies.every(mayBe) ? replies[0] : undefined
}

/** RFC 3463 says 5.1.7 and 5.1.8 of a sender; many servers say it in words alone. */
const speaksOfSender = ({ enhanced, text }: SmtpReply, return_path: string): boolean =>
  /^[45]\.1\.[78]$/.test(enhanced ?? "") ||
  /\bsender\b/i.test(text) ||
  text.toLowerCase().includes(return_path.toLowerCase())
