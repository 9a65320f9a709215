import type { RetrySchedule } from "../../jobs/work"
import { outcomeOf } from "../../providers/provider"
import { smtpSchedule } from "../schedule"
import { type ReplyPolicy, relayFaultOf, relayPolicy } from "../smtp/outcome"
import { ConnectionPool, type PoolLimits } from "../smtp/pool"
import { SmtpRefusal, type Timeouts } from "../smtp/session"
import { attemptRelay } from "../smtp/smtp-attempt"
import { isUntrusted, SmtpConnectionError, TRUST_ADVICE } from "../smtp/wire"
import { type EmailProvider, ProviderError } from "./provider"

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
  const pool = new ConnectionPool({ ...server, timeouts: patience }, { ...LIMITS, ...limits })
  const target = { host: server.host, pool, policy: relayPolicy(accepted) }
  return {
    name,
    schedule,
    close: () => pool.close(),
    check: () => checked(pool, server),
    async send(mail) {
      const transcript: string[] = []
      const { results } = await attemptRelay(target, mail, transcript)
      const outcomes = results.map((one, index) => ({ ...one, email: mail.to[index] ?? "" }))
      return outcomeOf(outcomes, { provider: name, schedule, transcript })
    },
  }
}

/** A new connection, so that what has become of the credentials shows. */
async function checked(
  pool: ConnectionPool,
  { host, port, username }: SmtpOptions,
): Promise<string> {
  try {
    const session = await pool.acquire([], { fresh: true })
    const { tls, could_be_safe } = session
    pool.release(session)
    const login = username === undefined ? "without a login" : "and it accepted the login"
    const advice = could_be_safe ? " It offers STARTTLS. Set tls to starttls." : ""
    return `${host}:${port} answers over ${tls ?? "an open connection"}, ${login}.${advice}`
  } catch (error) {
    const { message } = error as Error
    const said = error instanceof SmtpRefusal ? `${error.phase}: ${message}` : message
    const is_tls = error instanceof SmtpConnectionError && error.kind === "tls"
    const words = is_tls && isUntrusted(message) ? `${said}. ${TRUST_ADVICE}` : said
    throw new ProviderError(relayFaultOf(error as Error) ?? "infrastructure", words)
  }
}
