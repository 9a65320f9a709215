import type { Resolver } from "../core/dns"
import { millis, millisFrom, nextTurn } from "../core/time"
import { type Workers, WorkerTimeout } from "../core/workers"
import { askWithHosts, hostType, openDnsAsker, spfQuestion } from "./dns-asker"
import { HEAD_BYTES } from "./header-rows"
import type { MailSource } from "./parse-inbound-task"
import {
  lateVerdicts,
  type MailToVerify,
  type MailVerdicts,
  type VerifiedMail,
} from "./verify-task"

/** After that time nothing is asked any more: what is not known yet is a `temperror`. */
export const DNS_MS = 10_000

/** For one round in a thread; the largest mail takes a second. */
const ROUND_MS = 10_000

/** Each round of SPF follows one more include or redirect, or asks for one more term. */
const MAX_ROUNDS = 60

/** Copied in parts, because the copy of 25 MB holds the main thread for up to 40 ms. */
const COPY_BYTES = 512 * 1024

export interface MailArrival {
  /** Of the client, behind a trusted proxy. */
  address: string
  helo: string
  /** Empty for the null sender. */
  mail_from: string
  /** ISO 8601. Signatures are verified as of that time; without it, as of now. */
  received_at?: string
}

export interface VerdictTools {
  workers: Workers
  dns: Resolver
  host: string
  /** Default 10 s. */
  dns_ms?: number
}

/**
 * SPF, DKIM, DMARC and ARC of a mail that arrived. It parses and computes in a worker thread, and
 * asks DNS here, so that a slow name server holds no thread. A question that DNS does not answer,
 * or a mail that takes a thread too long, gives `temperror`, never `fail`. Rejects with
 * `service_unavailable` when the threads are overrun or the server stops.
 */
export async function verify(
  mail: MailSource,
  { received_at, ...session }: MailArrival,
  { workers, dns, host, dns_ms = DNS_MS }: VerdictTools,
): Promise<MailVerdicts> {
  const asker = openDnsAsker(dns, dns_ms)
  const { answers } = asker
  const sender = { ...session, host }
  const now = received_at === undefined ? millis() : millisFrom(received_at)
  const first = spfQuestion(sender)
  let verdicts = lateVerdicts(first.name)
  let is_whole = false // the header says first what DNS has to be asked for
  try {
    await asker.ask([first])
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const given = { mail: await copyOf(mail, is_whole), is_whole, sender, now, answers }
      const found = await run(workers, given)
      if (!found) return verdicts
      await askWithHosts(asker, found.missing, hostType(sender))
      if (found.missing.length > 0) continue
      verdicts = found.verdicts
      if (!found.needs_whole) return verdicts
      is_whole = true
    }
    return verdicts
  } finally {
    asker.close()
  }
}

/** Undefined where the thread takes too long. */
async function run(workers: Workers, given: MailToVerify): Promise<VerifiedMail | undefined> {
  const transfer = given.mail instanceof Uint8Array ? [given.mail.buffer as ArrayBuffer] : []
  try {
    return await workers.run("verify-mail", given, { deadline_ms: ROUND_MS, transfer })
  } catch (error) {
    if (error instanceof WorkerTimeout) return undefined
    throw error
  }
}

async function copyOf(mail: MailSource, is_whole: boolean): Promise<MailSource> {
  if (!(mail instanceof Uint8Array)) return mail
  const bytes = is_whole ? mail : mail.subarray(0, HEAD_BYTES)
  const copy = new Uint8Array(bytes.length)
  for (let from = 0; from < bytes.length; from += COPY_BYTES) {
    if (from > 0) await nextTurn()
    copy.set(bytes.subarray(from, from + COPY_BYTES), from)
  }
  return copy
}

/**
 * Why a mail is refused at the end of DATA (550 5.7.1) when `inbound.enforce_dmarc` is on:
 * undefined when it is taken. A policy for a part of the mail (`pct=`) always treats one mail the
 * same.
 */
export function dmarcRefusal({ dmarc, detail }: MailVerdicts): string | undefined {
  const { domain, policy, percent, sample, reason, policy_domain } = detail.dmarc
  if (dmarc !== "fail" || policy !== "reject" || sample >= percent) return undefined
  return policy_domain === null
    ? reason
    : `The DMARC policy of ${domain} has this mail refused. ${reason}`
}
