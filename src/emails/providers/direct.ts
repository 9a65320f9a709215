import { log } from "../../core/log"
import { millis, millisFrom } from "../../core/time"
import { DeferredError, type RetrySchedule } from "../../jobs/work"
import { domainOf } from "../../lib/address"
import type { RecipientOutcome } from "../../providers/provider"
import { smtpSchedule } from "../schedule"
import { everyone, faultOf, type Judged, judge } from "../smtp/attempt"
import { type MtaStsOptions, mtaSts } from "../smtp/mta-sts"
import { MailRoutes, type MxOptions } from "../smtp/mx"
import { FAILED, RETRY, type Verdict } from "../smtp/outcome"
import { isHold, type LaneOptions, Lanes, type Place } from "../smtp/permits"
import { attemptDomain, type DomainAttempt, type Ways } from "./direct-attempt"
import { type HostOptions, Hosts } from "./direct-hosts"
import type { Wish } from "./lane"
import { Places } from "./places"
import type { EmailProvider, OutgoingMail } from "./provider"

export interface DirectOptions {
  dns: MxOptions["dns"] & MtaStsOptions["dns"]
  /** Of mail servers. */
  port?: number | undefined
  /** Deliveries at once to one domain. */
  per_domain?: number | undefined
  /** Deliveries at once in all. */
  concurrency?: number | undefined
  /** Of these, where not all of them are for this one. */
  places?: Places | undefined
  /** Networks that are not public, where mail servers may be all the same. */
  allow_private?: readonly string[] | undefined
  ehlo_name?: string | undefined
  onCrowd?: LaneOptions["onCrowd"]
  policies: MtaStsOptions["policies"]
  schedule?: RetrySchedule
  timeouts?: HostOptions["timeouts"]
  /** PEM of the authority to trust where MTA-STS demands certificates, and for its policies. */
  ca?: string | undefined
  /** As in MtaStsOptions. */
  sts?: Pick<MtaStsOptions, "port" | "known_ms">
  random?: () => number
}

/** Who holds places for a message between `admit` and `dismiss`. */
interface Admission {
  places: Map<string, Place>
  holds: { domain: string; seconds: number; reason: string }[]
}

/**
 * Delivery to the mail servers of the recipients' own domains (RFC 5321, 5.1), so what is accepted is
 * delivered. One transaction a domain. `admit` and `send` reject with DeferredError where no domain of the
 * message has room; where some have, the recipients of the others are `retry` and `held`.
 */
export function direct(options: DirectOptions): EmailProvider {
  const { dns, policies, allow_private = [], ca, schedule = smtpSchedule() } = options
  const { per_domain = 5, concurrency = 20, port = 25, ehlo_name, timeouts } = options
  const { places = new Places(concurrency), onCrowd } = options
  const lanes = new Lanes({ per_domain, places, onCrowd })
  const hosts = new Hosts({ port, ehlo_name, ca, timeouts, max_connections: concurrency })
  const routes = new MailRoutes({ dns, allow_private, ...pick(options.random) })
  const ways: Ways = {
    routes,
    hosts,
    policyOf: mtaSts({ dns, policies, allow_private, ca, ...options.sts }),
  }
  const admitted = new Map<string, Admission>()

  const admit = async (message_id: string, to: string[], wish: Wish) => {
    if (admitted.has(message_id)) return
    const admission = await enterAll(lanes, to, wish)
    if (admission.places.size === 0 && admission.holds.length > 0) throw waiting(admission)
    admitted.set(message_id, admission)
  }
  const dismiss = (message_id: string) => {
    for (const place of admitted.get(message_id)?.places.values() ?? []) {
      lanes.leave(place, "nothing")
    }
    admitted.delete(message_id)
  }

  return {
    name: "direct",
    schedule,
    close: () => hosts.close(),
    admit: (message_id, to, is_urgent, project_id) =>
      admit(message_id, to, { is_urgent, project_id }),
    dismiss,
    async send(mail) {
      await admit(mail.message_id, mail.to, { project_id: mail.project_id })
      try {
        const admission = admitted.get(mail.message_id)
        if (!admission) throw new TypeError("the mail has no recipient")
        const from = mail.from === "" ? "" : ((await mail.reports_to?.()) ?? mail.from)
        return await sendAll(ways, lanes, { mail: { ...mail, from }, admission, schedule })
      } finally {
        dismiss(mail.message_id)
      }
    },
  }
}

const pick = (random: (() => number) | undefined) => (random ? { random } : {})

/** In line for one domain only: who waits for a second must not keep the place of a first. */
async function enterAll(lanes: Lanes, to: string[], wish: Wish): Promise<Admission> {
  const admission: Admission = { places: new Map(), holds: [] }
  const domains = new Set(to.map(domainOf))
  for (const domain of domains) {
    const entered =
      domains.size === 1 ? await lanes.enterInLine(domain, wish) : lanes.enter(domain, wish)
    if (!isHold(entered)) admission.places.set(domain, entered)
    else {
      const at = entered.until === null ? millis() : millisFrom(entered.until)
      const seconds = Math.max(0, (at - millis()) / 1000)
      admission.holds.push({ domain, seconds, reason: entered.reason })
    }
  }
  return admission
}

const soonest = ({ holds }: Admission) => holds.toSorted((a, b) => a.seconds - b.seconds)[0]

function waiting(admission: Admission): DeferredError {
  const { reason, seconds } = soonest(admission) ?? { reason: "no free delivery slot", seconds: 1 }
  return new DeferredError(reason, seconds)
}

interface Sending {
  mail: OutgoingMail
  admission: Admission
  schedule: RetrySchedule
}

async function sendAll(ways: Ways, lanes: Lanes, { mail, admission, schedule }: Sending) {
  const { places, holds } = admission
  const fault = faultOf(mail)
  const found = new Map<string, RecipientOutcome>()
  const transcript: string[] = []
  const is_only = places.size === 1
  const parts = [...places].map(async ([domain, place]) => {
    const to = mail.to.filter((email) => domainOf(email) === domain)
    const lines: string[] = []
    place.began = millis()
    const part = fault
      ? broken({ ...mail, to }, fault)
      : await attemptDomain(ways, domain, { ...mail, to }, lines).catch((error) => {
          // What the other domains took must not be forgotten, or they would get it twice.
          if (is_only) throw error
          log.error("the delivery to one of several domains failed unexpectedly", { domain, error })
          return broken(
            { ...mail, to },
            "An internal error stopped the attempt. The log has the reason.",
            RETRY,
          )
        })
    places.delete(domain)
    lanes.leave(place, part.report)
    transcript.push(...lines)
    for (const [index, email] of to.entries()) {
      const one = part.judged[index]
      if (one) found.set(email, outcomeOf(email, one))
    }
  })
  await Promise.all(parts)
  for (const { domain, reason } of holds) {
    for (const email of mail.to.filter((one) => domainOf(one) === domain)) {
      found.set(email, { ...NOT_TRIED, email, reason })
    }
  }
  // Who became open after the message was admitted has no place: he comes with the next attempt.
  const outcomes = mail.to.map((email) => found.get(email) ?? { ...NOT_TRIED, email, reason: null })
  const [first, ...others] = outcomes
  if (!first) throw new TypeError("the mail has no recipient")
  const only_held = outcomes.every(({ status, held }) => status !== "retry" || held)
  const soon: RetrySchedule = () => Math.max(1, soonest(admission)?.seconds ?? 0)
  const next = only_held ? soon : schedule
  return { ...first, provider: "direct", others, transcript, schedule: next }
}

const outcomeOf = (email: string, one: Judged): RecipientOutcome => ({
  ...one,
  email,
  status: one.status === "sent" ? "delivered" : one.status,
})

const OURS: Verdict = { ...FAILED, code: "internal_error" }

function broken(mail: OutgoingMail, fault: string, verdict = OURS): DomainAttempt {
  const one = judge(verdict, fault, { mx: "" })
  const reply = { ...one.reply, mx: null }
  return { judged: everyone(mail, { ...one, reply }), report: "nothing" }
}

const NOT_TRIED = {
  status: "retry",
  held: true,
  bounce_subtype: null,
  code: null,
  reply: { smtp_code: null, enhanced_code: null, response: null, mx: null, tls: null },
} as const
