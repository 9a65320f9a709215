import type { Blobs } from "../core/blobs"
import { ApiError } from "../core/errors"
import { codeOf, faultOf } from "../core/faults"
import { log } from "../core/log"
import { millisFrom } from "../core/time"
import { batchesPerPool, type Workers } from "../core/workers"
import type { Store } from "../store/store"
import { type DnsQuestion, keyOf } from "./dns-answers"
import { askWithHosts, hostType, openDnsAsker, spfQuestion } from "./dns-asker"
import type { InboundToRead, MailSource, ReadMail } from "./parse-inbound-task"
import { rawSource } from "./raw-mail"
import type { InboundRow } from "./tables"
import { DNS_MS, type VerdictTools, verify } from "./verdicts"
import type { ReadSmallMail, SmallMail, SmallMailResult, VerdictWords } from "./verify-task"

export interface MailReaderParts {
  store: Store
  workers: Workers
  inbound_blobs: Blobs
  verdicts: VerdictTools
}

/** The largest mail takes a second. */
const DEADLINE_MS = 20_000

/** A mail as it was read, and where what it holds is stored. */
export interface StoredMail {
  mail: ReadMail
  verdicts: VerdictWords
  /** The hashes of the files that were made of it, each once. */
  files: string[]
}

/**
 * Verdicts, header, bodies and files of a mail, whose files are on disk when it resolves. What the
 * parser does not manage keeps its raw message and says `parse_error`. Rejects where the threads
 * are overrun and where the storage does not write: then it is tried again. `known` is the raw message,
 * where it need not be read.
 */
export async function readStoredMail(
  parts: MailReaderParts,
  row: InboundRow,
  known?: Uint8Array,
): Promise<StoredMail> {
  const { store, workers, inbound_blobs } = parts
  const raw = known ?? (await rawSource({ read: store.read, inbound_blobs }, row)) ?? notStored()
  const kept = { blobs_dir: inbound_blobs.dir, verdicts: verdictsIn(row) }
  const small =
    raw instanceof Uint8Array
      ? await patiently(parts, (tools) => readSmall(row, raw, { ...kept, tools, workers }))
      : undefined
  const { mail, verdicts } = small ?? (await alone(parts, row, raw))
  const hashes = mail.files.map(({ sha256 }) => sha256)
  if ("sha256" in mail.content) hashes.push(mail.content.sha256)
  return { mail, verdicts, files: [...new Set(hashes)] }
}

/** Step by step, so that a mail that was made to hurt costs only itself. */
async function alone(
  parts: MailReaderParts,
  row: InboundRow,
  raw: MailSource,
): Promise<ReadSmallMail> {
  const { address, helo, mail_from } = row.session
  const arrival = { address, helo, mail_from, received_at: row.created_at }
  const verdicts =
    verdictsIn(row) ?? (await patiently(parts, (tools) => verify(raw, arrival, tools)))
  const blobs_dir = parts.inbound_blobs.dir
  const wanted = { mail: raw, blobs_dir, mail_from, verdicts, whole: true }
  return { mail: await read(parts, wanted, row.id), verdicts }
}

/** Where the mail was verified when it came. */
function verdictsIn(row: InboundRow): VerdictWords | null {
  const { spf_verdict: spf, dkim_verdict: dkim, dmarc_verdict: dmarc, arc_verdict: arc } = row
  const { verified } = row
  if (!spf || !dkim || !dmarc || !arc || verified === null) return null
  return { spf, dkim, dmarc, arc, verified }
}

/** As where its file is missing: the next run sees whether the mail was deleted. */
function notStored(): never {
  throw Object.assign(new Error("the raw message is not stored"), { code: "ENOENT" })
}

/** Mails whose senders' name servers may take their time; of more than these, only a short one. */
const MOST_PATIENT = 8
const SHORT_MS = 1_500

const waiting = new WeakMap<VerdictTools, number>()

/**
 * Each mail holds a place of the job loop while DNS is asked. A sender whose name servers do not answer
 * must not hold all of them.
 */
async function patiently<Result>(
  { verdicts: tools }: MailReaderParts,
  work: (tools: VerdictTools) => Promise<Result>,
): Promise<Result> {
  const others = waiting.get(tools) ?? 0
  waiting.set(tools, others + 1)
  try {
    return await work(others < MOST_PATIENT ? tools : { ...tools, dns_ms: SHORT_MS })
  } finally {
    waiting.set(tools, (waiting.get(tools) ?? 1) - 1)
  }
}

async function read(
  parts: Pick<MailReaderParts, "workers">,
  mail: InboundToRead,
  inbound_id: string,
): Promise<ReadMail> {
  try {
    return await parts.workers.run<ReadMail>("parse-inbound", mail, { deadline_ms: DEADLINE_MS })
  } catch (error) {
    if (isPassing(error)) throw error
    log.warn("a mail could not be read", { inbound_id, whole: mail.whole, error })
    return mail.whole ? read(parts, { ...mail, whole: false }, inbound_id) : UNREADABLE
  }
}

/** It is no fault of the mail: the threads are overrun, the server stops, or the storage has trouble. */
const isPassing = (error: unknown) =>
  error instanceof ApiError || faultOf(error) !== undefined || codeOf(error) === "ENOENT"

/** Of a mail of which not even the header can be read. The raw message is there. */
const UNREADABLE: ReadMail = {
  from: null,
  to: [],
  cc: [],
  reply_to: [],
  subject: null,
  rfc_message_id: null,
  in_reply_to: null,
  references: [],
  headers: {},
  content: { text_body: null, html_body: null, stripped_text: null },
  files: [],
  kind: { kind: "other" },
  auto_submitted: null,
  returned: null,
  spam: { score: 0, flagged: false, rules: [] },
  parse_error: true,
  truncated: false,
}

/** For a batch in a thread; each of its mails takes a millisecond. */
const BATCH_MS = 5_000

/** Each round asks DNS for what the round before wanted to know. Usual mail takes one to three. */
const MAX_ROUNDS = 20

const batchesOf = batchesPerPool<SmallMail, SmallMailResult>("read-small-mails", BATCH_MS)

interface SmallMailParts {
  workers: Workers
  tools: Omit<VerdictTools, "workers">
  blobs_dir: string
  /** Where it was verified when it came. */
  verdicts: VerdictWords | null
}

/**
 * Verdicts, header, bodies and files of a small mail, in a task that it shares with others. Undefined
 * where that is not enough, such as for a mail that was made to hurt: then it has to be verified and read
 * alone. Rejects with `service_unavailable` when the threads are overrun or the server stops.
 */
export async function readSmall(
  { session, created_at }: Pick<InboundRow, "session" | "created_at">,
  raw: Uint8Array,
  { workers, tools, blobs_dir, verdicts }: SmallMailParts,
): Promise<ReadSmallMail | undefined> {
  const { dns, host, dns_ms = DNS_MS } = tools
  const { address, helo, mail_from } = session
  const sender = { address, helo, mail_from, host }
  const asker = openDnsAsker(dns, dns_ms)
  const first = spfQuestion(sender)
  const asked: DnsQuestion[] = []
  try {
    if (!verdicts) {
      asker.recall(usual.of(first.name))
      await asker.ask([first])
    }
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const { answers } = asker
      const now = millisFrom(created_at)
      const given = { mail: raw, sender, now, answers, verdicts, blobs_dir }
      const result = (await batchesOf(workers).add(given)) ?? { failed: "no answer" }
      if ("failed" in result) return hard(result.failed)
      if ("mail" in result) {
        usual.note(first.name, asked)
        return result
      }
      asked.push(...result.missing)
      await askWithHosts(asker, result.missing, hostType(sender))
    }
    return hard("it asks DNS again and again")
  } catch (error) {
    if (error instanceof ApiError) throw error
    return hard(error)
  } finally {
    asker.close()
  }
}

function hard(reason: unknown): undefined {
  log.debug("a mail is verified and read alone", { reason })
  return undefined
}

/** Domains whose mail came lately, and questions of a mail, that are remembered. */
const MOST_DOMAINS = 1_000
const MOST_QUESTIONS = 20

/**
 * What the last mail of a sender's domain wanted to know. Where DNS was asked for it just now, the next
 * mail begins with the answers, so that one round is enough.
 */
class UsualQuestions {
  readonly #by_domain = new Map<string, readonly DnsQuestion[]>()

  of(domain: string): readonly DnsQuestion[] {
    return this.#by_domain.get(domain) ?? []
  }

  note(domain: string, asked: DnsQuestion[]) {
    if (asked.length === 0) return
    if (this.#by_domain.size >= MOST_DOMAINS) this.#by_domain.clear()
    const all = [...this.of(domain), ...asked].map(
      (question) => [keyOf(question), question] as const,
    )
    this.#by_domain.set(domain, [...new Map(all).values()].slice(-MOST_QUESTIONS))
  }
}

const usual = new UsualQuestions()
