import type { Resolver } from "../core/dns"
import { millis, millisFrom, nextTurn } from "../core/time"
import { type Workers, WorkerTimeout } from "../core/workers"
import { evaluateDmarc, undecided } from "./dmarc"
import type { DnsAnswers } from "./dns-answers"
import { askWithHosts, type DnsAsker, hostType, openDnsAsker, spfQuestion } from "./dns-asker"
import { HEAD_BYTES } from "./header-rows"
import { type MailVerdicts, summary, UNSIGNED } from "./mail-verdicts"
import type { SpfResult, SpfSender } from "./sender-policy"
import type { ReadHeader, SignatureVerdicts } from "./signatures"
import type { MailSource, VerifyStep, VerifyStepResult } from "./verify-task"

/** After that time nothing is asked any more: what is not known yet is a `temperror`. */
export const DNS_MS = 10_000

/** For one step in a thread; the largest mail takes a second. */
const STEP_MS = 10_000

const SLOW = "The mail took too long to read."

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
  arrival: MailArrival,
  { workers, dns, host, dns_ms = DNS_MS }: VerdictTools,
): Promise<MailVerdicts> {
  const asker = openDnsAsker(dns, dns_ms)
  try {
    const { received_at, ...session } = arrival
    const now = received_at === undefined ? millis() : millisFrom(received_at)
    const [spf, { header, dkim, arc }] = await Promise.all([
      spfOf({ ...session, host }, workers, asker),
      contentOf(mail, now, workers, asker),
    ])
    const dmarc = header.authors
      ? await evaluateDmarc(header.authors, { spf, dkim }, (name) => asker.txt(name))
      : undecided(SLOW)
    return summary({ spf, dkim, dmarc: { ...dmarc, sample: header.sample }, arc })
  } finally {
    asker.close()
  }
}

/**
 * Why a mail is refused at the end of DATA (550 5.7.1) when `inbound.enforce_dmarc` is on:
 * undefined when it is taken. A policy for a part of the mail (`pct=`) always treats one mail the
 * same.
 */
export function dmarcRefusal({ dmarc, detail }: MailVerdicts): string | undefined {
  const { domain, policy, percent, sample, reason } = detail.dmarc
  if (dmarc !== "fail" || policy !== "reject" || sample >= percent) return undefined
  if (detail.dmarc.policy_domain === null) return reason
  return `The DMARC policy of ${domain} has this mail refused. ${reason}`
}

async function contentOf(mail: MailSource, now: number, workers: Workers, asker: DnsAsker) {
  const header = await readHeader(mail, workers)
  if (header.is_unsigned) return { header, ...UNSIGNED }
  await asker.ask(header.keys)
  return { header, ...(await signaturesOf(mail, now, workers, asker)) }
}

async function readHeader(mail: MailSource, workers: Workers): Promise<ReadHeader> {
  const head = mail instanceof Uint8Array ? new Uint8Array(mail.subarray(0, HEAD_BYTES)) : mail
  const { value } = await run<ReadHeader>(workers, { step: "header", mail: head }, () => ({
    keys: [],
    authors: null,
    sample: 0,
    is_unsigned: false,
  }))
  return value
}

async function spfOf(sender: SpfSender, workers: Workers, asker: DnsAsker): Promise<SpfResult> {
  const first = spfQuestion(sender)
  const timed_out = (): SpfResult => ({
    result: "temperror",
    domain: first.name,
    lookups: 0,
    reason: "The SPF record took too long to read.",
  })
  await asker.ask([first]) // what a thread would want to know first
  return settled(
    asker,
    timed_out,
    (answers) => run<SpfResult>(workers, { step: "spf", sender, answers }, timed_out),
    hostType(sender),
  )
}

async function signaturesOf(
  mail: MailSource,
  now: number,
  workers: Workers,
  asker: DnsAsker,
): Promise<SignatureVerdicts> {
  const timed_out = (): SignatureVerdicts => ({
    dkim: [
      {
        result: "temperror",
        domain: "",
        selector: "",
        algorithm: "",
        key_bits: null,
        reason: SLOW,
      },
    ],
    arc: { result: "temperror", sealers: [], reason: SLOW },
  })
  return settled(asker, timed_out, async (answers) => {
    const copy = mail instanceof Uint8Array ? await copyOf(mail) : mail
    return run<SignatureVerdicts>(
      workers,
      { step: "signatures", mail: copy, now, answers },
      timed_out,
    )
  })
}

/** Does a step again until DNS has been asked for all that it wants to know. */
async function settled<T>(
  asker: DnsAsker,
  timed_out: () => T,
  step: (answers: DnsAnswers) => Promise<VerifyStepResult<T>>,
  hosts?: "A" | "AAAA",
): Promise<T> {
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const { missing, value } = await step(asker.answers)
    if (missing.length === 0) return value
    await (hosts ? askWithHosts(asker, missing, hosts) : asker.ask(missing))
  }
  return timed_out()
}

async function run<T>(
  workers: Workers,
  input: VerifyStep,
  timed_out: () => T,
): Promise<VerifyStepResult<T>> {
  const transfer = "mail" in input && input.mail instanceof Uint8Array ? [input.mail.buffer] : []
  try {
    return await workers.run<VerifyStepResult<T>>("verify-mail", input, {
      deadline_ms: STEP_MS,
      transfer: transfer as ArrayBuffer[],
    })
  } catch (error) {
    if (!(error instanceof WorkerTimeout)) throw error
    return { missing: [], value: timed_out() }
  }
}

async function copyOf(bytes: Uint8Array): Promise<Uint8Array> {
  const copy = new Uint8Array(bytes.length)
  for (let from = 0; from < bytes.length; from += COPY_BYTES) {
    if (from > 0) await nextTurn()
    copy.set(bytes.subarray(from, from + COPY_BYTES), from)
  }
  return copy
}
