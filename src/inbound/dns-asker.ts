import { DnsError, type Mx, type Resolver } from "../core/dns"
import { monotonic } from "../core/time"
import { Semaphore } from "../lib/semaphore"
import { type DnsAnswer, type DnsAnswers, type DnsQuestion, keyOf } from "./dns-answers"

/** For one mail. SPF may ask for 10 terms with 10 hosts each, DKIM for 10 keys, ARC for 51. */
const MAX_QUESTIONS = 200

/** Each question that is open holds a socket. */
const MAX_OPEN = 10

/** Asks DNS for one mail, each question once. */
export interface DnsAsker {
  answers: DnsAnswers
  /** Resolves when each question has its answer, at the latest when the time is over. */
  ask(questions: DnsQuestion[]): Promise<void>
  /** Puts those among the answers that are known already. It asks nobody. */
  recall(questions: readonly DnsQuestion[]): void
  close(): void
}

/** After `ms` milliseconds nothing is asked any more, and what is open has no answer. */
export function openDnsAsker(dns: Resolver, ms: number): DnsAsker {
  const answers: DnsAnswers = {}
  const asked = new Map<string, Promise<void>>()
  const over = Promise.withResolvers<DnsAnswer>()
  const end = monotonic() + ms
  const late = { unknown: `no answer in ${ms} ms` }
  const timer = setTimeout(() => over.resolve(late), ms)
  const permits = new Semaphore(MAX_OPEN)
  const answerTo = async (question: DnsQuestion): Promise<DnsAnswer> => {
    const release = await permits.acquire()
    try {
      if (monotonic() >= end) return late
      return await Promise.race([lookUp(dns, question), over.promise])
    } finally {
      release()
    }
  }
  const once = (question: DnsQuestion): Promise<void> => {
    const key = keyOf(question)
    const known = asked.get(key)
    if (known) return known
    if (asked.size >= MAX_QUESTIONS) {
      answers[key] = { unknown: `the mail asks for more than ${MAX_QUESTIONS} names` }
      return Promise.resolve()
    }
    const answered = answerTo(question).then((answer) => {
      answers[key] = answer
    })
    asked.set(key, answered)
    return answered
  }
  const ask = async (questions: DnsQuestion[]) => {
    await Promise.all(questions.map(once))
  }
  return {
    answers,
    ask,
    recall(questions) {
      for (const question of questions) {
        const key = keyOf(question)
        const answer = asked.has(key) ? undefined : keptAnswer(dns, key)
        if (!answer) continue
        answers[key] = answer
        asked.set(key, Promise.resolve())
      }
    },
    close: () => clearTimeout(timer),
  }
}

/** What SPF asks first (RFC 7208 2.4): for MAIL FROM, or for the HELO name where MAIL FROM is empty. */
export function spfQuestion({ mail_from, helo }: { mail_from: string; helo: string }): DnsQuestion {
  const at = mail_from.lastIndexOf("@")
  return { name: at === -1 ? helo : mail_from.slice(at + 1), type: "TXT" }
}

/** Of the addresses that SPF compares with the client's. */
export const hostType = ({ address }: { address: string }) => (address.includes(":") ? "AAAA" : "A")

/** SPF asks for the hosts of an MX record one by one (RFC 7208 5.4); here they are asked at once. */
export async function askWithHosts(
  asker: DnsAsker,
  questions: DnsQuestion[],
  type: "A" | "AAAA",
): Promise<void> {
  await asker.ask(questions)
  await asker.ask(questions.flatMap((question) => hostsOf(question, asker, type)))
}

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

/** Mail comes in bursts from few senders, whose records are asked for again and again. */
const KEPT_MS = 30_000
const MOST_KEPT = 5_000

interface KeptAnswer {
  answer: DnsAnswer
  until: number
}

const memories = new WeakMap<Resolver, Map<string, KeptAnswer>>()

function keptAnswer(dns: Resolver, key: string): DnsAnswer | undefined {
  const kept = memories.get(dns)?.get(key)
  return kept && kept.until > monotonic() ? kept.answer : undefined
}

/** As `ask`, but what DNS said within the last 30 s is not asked again. A failure is never kept. */
async function lookUp(dns: Resolver, question: DnsQuestion): Promise<DnsAnswer> {
  const key = keyOf(question)
  const kept = keptAnswer(dns, key)
  if (kept) return kept
  const answer = await ask(dns, question)
  const memory = memories.get(dns) ?? new Map<string, KeptAnswer>()
  memories.set(dns, memory)
  if (memory.size >= MOST_KEPT) memory.clear()
  if (!("unknown" in answer)) memory.set(key, { answer, until: monotonic() + KEPT_MS })
  return answer
}

async function ask(dns: Resolver, { name, type }: DnsQuestion): Promise<DnsAnswer> {
  try {
    if (type === "TXT") return { rows: await dns.txt(name) }
    if (type === "MX") return { rows: await dns.mx(name) }
    if (type === "PTR") return { rows: await dns.ptr(name) }
    return { rows: type === "A" ? await dns.a(name) : await dns.aaaa(name) }
  } catch (error) {
    if (!(error instanceof DnsError)) throw error
    // What cannot be a name has no records. The message of the error names our name servers.
    return error.transient ? { unknown: "no name server gave an answer" } : { rows: [] }
  }
}
