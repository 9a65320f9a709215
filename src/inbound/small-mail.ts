import { ApiError } from "../core/errors"
import { log } from "../core/log"
import { millisFrom } from "../core/time"
import { batchesPerPool } from "../core/worker-batches"
import type { Workers } from "../core/workers"
import { type DnsQuestion, keyOf } from "./dns-answers"
import { askWithHosts, hostType, openDnsAsker, spfQuestion } from "./dns-asker"
import type { VerdictWords } from "./mail-verdicts"
import type { ReadSmallMail, SmallMail, SmallMailResult } from "./small-mail-task"
import type { InboundRow } from "./tables"
import { DNS_MS, type VerdictTools } from "./verdicts"

/** For a batch in a thread; each of its mails takes a millisecond. */
const DEADLINE_MS = 5_000

/** Each round asks DNS for what the round before wanted to know. Usual mail takes one to three. */
const MAX_ROUNDS = 20

const batchesOf = batchesPerPool<SmallMail, SmallMailResult>("read-small-mails", DEADLINE_MS)

interface SmallMailParts {
  workers: Workers
  tools: Omit<VerdictTools, "workers">
  blobs_dir: string
  /** Where it was judged when it came. */
  verdicts: VerdictWords | null
}

/**
 * Verdicts, header, bodies and files of a small mail, in a task that it shares with others. Undefined
 * where that is not enough, such as for a mail that was made to hurt: then it has to be judged and read
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
      const mail = { raw, sender, now, answers, verdicts, blobs_dir }
      const result = (await batchesOf(workers).add(mail)) ?? { failed: "no answer" }
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
  log.debug("a mail is judged and read alone", { reason })
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
