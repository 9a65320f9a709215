import { resolver } from "../../core/dns"
import { log } from "../../core/log"
import { millis, millisFrom } from "../../core/time"
import { DeferredError, type RetrySchedule } from "../../jobs/work-item"
import { domainOf } from "../../lib/address"
import { NO_REPLY, type ProviderDescriptor, type RecipientOutcome } from "../../providers/provider"
import { MailNotMade } from "../mailer-orders"
import {
  ConcurrencyLimit,
  isDenied,
  PerDestinationLimits,
  type PerDestinationOptions,
  type Permit,
  type PermitRequest,
} from "../smtp/destination-limits"
import { type MtaStsOptions, mtaSts } from "../smtp/mta-sts"
import { MailRoutes, type MxOptions } from "../smtp/mx"
import { NOWHERE, outcomeOf, unanswered } from "../smtp/outcome"
import {
  attemptDomain,
  type MailNetwork,
  reportsTo,
  type SmtpAttemptResult,
} from "../smtp/smtp-attempt"
import { type HostOptions, MailHosts } from "../smtp/smtp-client"
import {
  type EmailContext,
  type EmailProvider,
  type OutgoingMail,
  smtpSchedule,
  type UnsentMail,
} from "./provider"

export interface DirectOptions {
  dns: MxOptions["dns"] & MtaStsOptions["dns"]
  port?: number | undefined
  per_domain?: number | undefined
  concurrency?: number | undefined
  limit?: ConcurrencyLimit | undefined
  /** Networks that are not public, where mail servers may be all the same. */
  allow_private?: readonly string[] | undefined
  ehlo_name?: string | undefined
  onBacklog?: PerDestinationOptions["onBacklog"]
  policies: MtaStsOptions["policies"]
  schedule?: RetrySchedule
  timeouts?: HostOptions["timeouts"]
  /** PEM of the authority to trust where MTA-STS demands certificates, and for its policies. */
  ca?: string | undefined
  sts?: Pick<MtaStsOptions, "port" | "known_ms">
  random?: () => number
}

/** What a message holds between `admit` and `dismiss`. */
interface Admission {
  permits: Map<string, Permit>
  denials: { domain: string; seconds: number; reason: string }[]
}

/**
 * Delivery to the mail servers of the recipients' own domains (RFC 5321, 5.1), so what is accepted is
 * delivered. One transaction a domain. `admit` and `send` reject with DeferredError where no domain of the
 * message has a permit; where some have, the recipients of the others are `retry` and `held`.
 */
export function direct(options: DirectOptions): EmailProvider {
  const { dns, policies, allow_private = [], ca, schedule = smtpSchedule(), random } = options
  const { per_domain = 5, concurrency = 20, port = 25, ehlo_name, timeouts, onBacklog } = options
  const limit = options.limit ?? new ConcurrencyLimit(concurrency)
  const limits = new PerDestinationLimits({
    per_destination: per_domain,
    concurrency: limit,
    onBacklog,
  })
  const network: MailNetwork = {
    routes: new MailRoutes({ dns, allow_private, ...(random && { random }) }),
    hosts: new MailHosts({ port, ehlo_name, ca, timeouts, max_connections: concurrency }),
    policyOf: mtaSts({ dns, policies, allow_private, ca, ...options.sts }),
  }
  const admitted = new Map<string, Admission>()

  const admit = async (message_id: string, to: string[], request: PermitRequest) => {
    if (admitted.has(message_id)) return
    const admission = await acquireAll(limits, to, request)
    if (admission.permits.size === 0 && admission.denials.length > 0) throw waiting(admission)
    admitted.set(message_id, admission)
  }
  const dismiss = (message_id: string) => {
    for (const permit of admitted.get(message_id)?.permits.values() ?? []) {
      limits.release(permit, "nothing")
    }
    admitted.delete(message_id)
  }

  return {
    name: "direct",
    schedule,
    makes_mail: true,
    close: () => network.hosts.close(),
    admit: (message_id, to, is_urgent, project_id) =>
      admit(message_id, to, { is_urgent, project_id }),
    dismiss,
    async send(mail: UnsentMail) {
      await admit(mail.message_id, mail.to, { project_id: mail.project_id })
      try {
        const admission = admitted.get(mail.message_id)
        if (!admission) throw new TypeError("the mail has no recipient")
        const sent = { ...mail, from: await reportsTo(mail) }
        return await sendAll(network, limits, { mail: sent, admission, schedule })
      } finally {
        dismiss(mail.message_id)
      }
    },
  }
}

/** Waits for one domain only: a message that waits for a second one must not hold the permit of a first. */
async function acquireAll(
  limits: PerDestinationLimits,
  to: string[],
  request: PermitRequest,
): Promise<Admission> {
  const admission: Admission = { permits: new Map(), denials: [] }
  const domains = new Set(to.map(domainOf))
  for (const domain of domains) {
    const answer =
      domains.size === 1
        ? await limits.acquire(domain, request)
        : limits.tryAcquire(domain, request)
    if (!isDenied(answer)) admission.permits.set(domain, answer)
    else {
      const seconds = Math.max(0, (millisFrom(answer.until) - millis()) / 1000)
      admission.denials.push({ domain, seconds, reason: answer.reason })
    }
  }
  return admission
}

const soonest = ({ denials }: Admission) => denials.toSorted((a, b) => a.seconds - b.seconds)[0]

function waiting(admission: Admission): DeferredError {
  const { reason, seconds } = soonest(admission) ?? { reason: "no free delivery slot", seconds: 1 }
  return new DeferredError(reason, seconds)
}

async function sendAll(
  network: MailNetwork,
  limits: PerDestinationLimits,
  {
    mail,
    admission,
    schedule,
  }: { mail: UnsentMail; admission: Admission; schedule: RetrySchedule },
) {
  const { permits, denials } = admission
  const found = new Map<string, RecipientOutcome>()
  const transcript: string[] = []
  const is_only = permits.size === 1
  const parts = [...permits].map(async ([domain, permit]) => {
    const to = mail.to.filter((email) => domainOf(email) === domain)
    const lines: string[] = []
    permit.began = millis()
    const part = await attemptDomain(network, domain, { ...mail, to }, lines).catch((error) => {
      // What the other domains took must not be forgotten, or they would get it twice.
      if (is_only || error instanceof MailNotMade) throw error
      log.error("the delivery to one of several domains failed unexpectedly", { domain, error })
      return stopped(to)
    })
    permits.delete(domain)
    limits.release(permit, part.feedback)
    transcript.push(...lines)
    for (const [index, email] of to.entries()) {
      const result = part.results[index]
      if (result) found.set(email, { ...result, address: email })
    }
  })
  await Promise.all(parts)
  for (const { domain, reason } of denials) {
    for (const email of mail.to.filter((one) => domainOf(one) === domain)) {
      found.set(email, { ...NOT_TRIED, address: email, reason })
    }
  }
  // A recipient that became open after the message was admitted has no permit until the next attempt.
  const outcomes = mail.to.map(
    (email) => found.get(email) ?? { ...NOT_TRIED, address: email, reason: null },
  )
  const only_held = outcomes.every(({ status, held }) => status !== "retry" || held)
  const soon: RetrySchedule = () => Math.max(1, soonest(admission)?.seconds ?? 0)
  return outcomeOf(outcomes, {
    provider: "direct",
    transcript,
    schedule: only_held ? soon : schedule,
  })
}

const STOPPED = "An internal error stopped the attempt. The log has the reason."

const stopped = (to: string[]): SmtpAttemptResult => ({
  results: to.map(() => unanswered(STOPPED, NOWHERE)),
  feedback: "nothing",
})

const NOT_TRIED = {
  status: "retry",
  held: true,
  bounce_subtype: null,
  code: null,
  reply: NO_REPLY,
} as const

export const directProvider: ProviderDescriptor<object, EmailContext, OutgoingMail> = {
  name: "direct",
  channel: "email",
  about: "the recipients' mail servers",
  reports: "`delivered` when the recipient's server took it",
  credentials: {},
  is_shared: true,
  spf: (_, { machine }) => machine,
  banner: () => "the recipients' own mail servers",
  fromSettings: () => ({}),
  open: (_, { settings, schedule, direct: own }) =>
    direct({
      ...own,
      dns: resolver({ servers: settings["dns.servers"] }),
      port: settings["delivery.mx_port"],
      per_domain: settings["delivery.per_domain"],
      concurrency: settings["delivery.concurrency"],
      allow_private: settings["delivery.allow_private"],
      ehlo_name: settings["delivery.ehlo_name"] ?? undefined,
      schedule,
    }),
}
