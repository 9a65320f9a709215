import type { Mx, Resolver } from "../core/dns"
import { millis, millisFrom, nextTurn } from "../core/time"
import { type Workers, WorkerTimeout } from "../core/workers"
import { type DmarcResult, evaluateDmarc, undecided } from "./dmarc"
import { type DnsAnswers, type DnsQuestion, keyOf } from "./dns-answers"
import { type DnsAsker, openDnsAsker } from "./dns-asker"
import { HEAD_BYTES, NO_CHAIN } from "./header-rows"
import type { SpfResult, SpfSender } from "./sender-policy"
import type { ArcResult, DkimResult, JudgedSignatures, ReadHeader } from "./signatures"
import type { MailSource, VerifyStep, VerifyStepResult } from "./verify-task"

/** After that time nothing is asked any more: what is not known yet is a `temperror`. */
const DNS_MS = 10_000

/** For one step in a thread; the largest mail takes a second. */
const STEP_MS = 10_000

const SLOW = "The mail took too long to read."

/** Each round of SPF follows one more include or redirect, or asks for one more term. */
const MAX_ROUNDS = 60

/** Copied in parts, because the copy of 25 MB holds the main thread for up to 40 ms. */
const COPY_BYTES = 512 * 1024

export type MailVerdict = "pass" | "fail" | "none" | "temperror"

export interface MailVerdicts {
  spf: MailVerdict
  dkim: MailVerdict
  dmarc: MailVerdict
  arc: MailVerdict
  /** False when SPF or DMARC failed. */
  verified: boolean
  detail: VerdictDetail
}

/** What each verdict rests on, with a reason in words. It is JSON. */
export interface VerdictDetail {
  spf: SpfResult
  dkim: DkimResult[]
  dmarc: DmarcResult & {
    /** 0 to 99. The policy is for this mail when it is below `percent`. */
    sample: number
  }
  arc: ArcResult
}

/** How a mail came in. */
export interface MailArrival {
  /** Of the client, behind a trusted proxy. */
  address: string
  helo: string
  /** Empty for the null sender. */
  mail_from: string
  /** ISO 8601. Signatures are judged as of that time; without it, as of now. */
  received_at?: string
}

export interface VerdictTools {
  workers: Workers
  dns: Resolver
  /** The name of this server. */
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

function summary(found: VerdictDetail): MailVerdicts {
  const detail = printable(found)
  const { spf, dmarc, arc } = detail
  const dkim = detail.dkim.map(({ result }) => result)
  const first = (["pass", "temperror", "fail"] as const).find((result) => dkim.includes(result))
  const verdict = SPF_VERDICTS[spf.result]
  return {
    spf: verdict,
    dkim: first ?? "none",
    dmarc: dmarc.result,
    arc: arc.result,
    verified: verdict !== "fail" && dmarc.result !== "fail",
    detail,
  }
}

/** The mail may put anything into a name: kept are 300 characters that every terminal may show. */
function printable<T>(value: T): T {
  if (typeof value === "string") {
    return value.slice(0, MAX_SHOWN).replace(/[^ -~]/g, "?") as T
  }
  if (Array.isArray(value)) return value.map(printable) as T
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, printable(one)])) as T
}

const MAX_SHOWN = 300

/** Only a definite `-all` is a failure. The other words give no answer that one could rely on. */
const SPF_VERDICTS: Record<SpfResult["result"], MailVerdict> = {
  pass: "pass",
  fail: "fail",
  softfail: "none",
  neutral: "none",
  none: "none",
  permerror: "none",
  temperror: "temperror",
}

async function contentOf(mail: MailSource, now: number, workers: Workers, asker: DnsAsker) {
  const header = await readHeader(mail, workers)
  if (header.is_unsigned) return { header, ...UNSIGNED }
  await asker.ask(header.keys)
  return { header, ...(await signaturesOf(mail, now, workers, asker)) }
}

/** What a thread would say of it. */
const UNSIGNED: JudgedSignatures = {
  dkim: [],
  arc: { result: "none", sealers: [], reason: NO_CHAIN },
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
  const at = sender.mail_from.lastIndexOf("@")
  const domain = at === -1 ? sender.helo : sender.mail_from.slice(at + 1)
  const timed_out = (): SpfResult => ({
    result: "temperror",
    domain,
    lookups: 0,
    reason: "The SPF record took too long to read.",
  })
  const hosts = sender.address.includes(":") ? "AAAA" : "A"
  await asker.ask([{ name: domain, type: "TXT" }]) // what a thread would want to know first
  return settled(
    asker,
    timed_out,
    (answers) => run<SpfResult>(workers, { step: "spf", sender, answers }, timed_out),
    hosts,
  )
}

async function signaturesOf(
  mail: MailSource,
  now: number,
  workers: Workers,
  asker: DnsAsker,
): Promise<JudgedSignatures> {
  const timed_out = (): JudgedSignatures => ({
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
    return run<JudgedSignatures>(
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
    await asker.ask(missing)
    if (hosts) await asker.ask(missing.flatMap((question) => hostsOf(question, asker, hosts)))
  }
  return timed_out()
}

/** SPF asks for the hosts of an MX record one by one (RFC 7208 5.4); here they are asked at once. */
function hostsOf(question: DnsQuestion, { answers }: DnsAsker, type: "A" | "AAAA"): DnsQuestion[] {
  const answer = answers[keyOf(question)]
  if (question.type !== "MX" || !answer || "unknown" in answer) return []
  const names = (answer.rows as Mx[]).slice(0, MAX_HOSTS).map(({ exchange }) => exchange)
  return names.flatMap((exchange) => {
    const name = exchange.replace(/\.$/, "")
    return name === "" ? [] : { name, type }
  })
}

const MAX_HOSTS = 10

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
