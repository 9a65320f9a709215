import { comparable, domainOf } from "../lib/address"
import { blameOf } from "../lib/bounce-blame"
import { MAILBOX_DOMAIN } from "../lib/mailbox-domain"
import type { Tx } from "../store/store"
import { repeatedly } from "../suppressions/general-bounces"
import { noteSoftFailures, type SoftFailure } from "../suppressions/soft-failures"
import { type NewSuppression, suppressAll } from "../suppressions/suppressions"
import { type Fact, OWN_SOURCE, type Tracked } from "./facts"

interface ChangedMessage {
  after: Pick<Tracked, "id" | "project_id" | "channel" | "source" | "provider">
  facts: Fact[]
}

/** Of one project. */
interface Lesson {
  lasting: NewSuppression[]
  /** Refusals that name nothing. */
  general: NewSuppression[]
  soft: SoftFailure[]
}

/**
 * Suppresses the addresses that can get no more mail, in the transaction that learns it (contract 20,
 * section 5): after a permanent bounce that is about the recipient (where it names nothing, after the second),
 * after a complaint, and for a while after several messages that were given up. Deliveries that succeed cost nothing here.
 * `are_attempts`: the facts are answers to attempts, and no reports that came later.
 */
export async function suppressWhere(
  tx: Tx,
  changed: ChangedMessage[],
  are_attempts: boolean,
): Promise<void> {
  const lessons = new Map<string, Lesson>()
  for (const { after, facts } of changed) {
    for (const fact of facts) {
      if (!BAD.has(fact.type) || (are_attempts && isSimulated(after, fact))) continue
      learn(lessons, after, fact)
    }
  }
  if (lessons.size === 0) return
  for (const project_id of [...lessons.keys()].sort()) {
    const { lasting, general, soft } = lessons.get(project_id) ?? NOTHING
    const addresses = general.map(({ address }) => address)
    const again = addresses.length > 0 ? await repeatedly(tx, project_id, addresses) : undefined
    const second = general.filter(({ address }) => again?.has(address))
    await suppressAll(tx, project_id, [...lasting, ...second])
    await noteSoftFailures(tx, project_id, soft)
  }
}

const NOTHING: Lesson = { lasting: [], general: [], soft: [] }

const BAD = new Set(["bounced", "complained", "failed"])

function learn(lessons: Map<string, Lesson>, message: ChangedMessage["after"], fact: Fact) {
  const { id, project_id, channel, source } = message
  if (channel !== "email" || source === OWN_SOURCE) return
  const meaning = meaningOf(fact)
  if (meaning === undefined) return
  const lesson = lessons.get(project_id) ?? { lasting: [], general: [], soft: [] }
  lessons.set(project_id, lesson)
  const address = comparable(fact.recipient_email)
  const diagnostic = fact.detail?.response ?? null
  if (meaning === "soft") return void lesson.soft.push({ address, message_id: id, diagnostic })
  const is_general = meaning === "general"
  const reason = meaning === "complaint" ? "complaint" : "bounce"
  const given = { channel, address, reason, origin: "event", source_message_id: id } as const
  lesson[is_general ? "general" : "lasting"].push({ ...given, diagnostic })
}

/** What the embedded mailbox answers for an address elsewhere is no word of that address. */
const isSimulated = ({ provider }: ChangedMessage["after"], { recipient_email }: Fact): boolean =>
  provider === "mailbox" && domainOf(recipient_email) !== MAILBOX_DOMAIN

function meaningOf(fact: Fact): "bounce" | "general" | "complaint" | "soft" | undefined {
  if (fact.type === "complained") {
    return fact.complaint_feedback_type === "not-spam" ? undefined : "complaint"
  }
  if (fact.type === "failed") return fact.is_soft ? "soft" : undefined
  if (blameOf(fact.bounce_subtype ?? "") !== "recipient") return undefined
  if (isTemporary(fact)) return "soft"
  return LASTING.has(fact.bounce_subtype ?? "") ? "bounce" : "general"
}

/** One such bounce is enough. */
const LASTING = new Set(["NoEmail", "MailboxFull", "Suppressed"])

/** A bounce of a mail that was deferred until it was given up, by a relay or a provider. */
function isTemporary({ bounce_type, detail }: Fact): boolean {
  if (bounce_type === "Transient") return true
  const code = detail?.smtp_code ?? null
  return code === null ? detail?.enhanced_code?.startsWith("4.") === true : code < 500
}
