import { isoFrom, millisFrom } from "../../core/time"
import { organizational } from "../../domains/names"
import { type Advisory, type Findings, joined, MOST_SUMMARY } from "./advisory"
import type { AdviceFacts } from "./facts"

/** What one rule finds. The same facts give the same findings. */
type AdviceRule = (facts: AdviceFacts) => Partial<Findings>
type Severity = "high" | "medium" | "low"

const risk = (severity: Severity, title: string, detail: string, fix: string) => ({
  deliverability_risks: [{ severity, title, detail, fix }],
})
const note = (severity: Severity, title: string, detail: string) => ({
  content_notes: [{ severity, title, detail }],
})

const senderDomain: AdviceRule = ({ sender }) => {
  if (!sender) return {}
  const { domain, may_send, lacking } = sender
  if (domain === null) {
    const detail = "The project has no default sender, so a broadcast without `from` is refused."
    return risk("high", "There is no sender", detail, "Set default_from of the project.")
  }
  const fix = `Publish the DNS records of ${domain} and run a check, or choose another sender.`
  if (!may_send) {
    const detail = `The project may not send from ${domain}, so the broadcast would be refused.`
    return risk("high", "The From domain is not verified", detail, fix)
  }
  if (lacking.length === 0) return {}
  const detail = `The last check of ${domain} did not find: ${lacking.join(", ")}.`
  return risk("medium", "The From domain lacks records", detail, fix)
}

const unsubscribeTarget: AdviceRule = ({ sender, content }) => {
  if (!sender || (sender.has_pages && content.ends_subscription)) return {}
  if (sender.has_pages) {
    const detail = "People that find no link report the mail as spam instead."
    const fix = "Add a link to {{unsubscribe_url}}."
    return risk("medium", "The body has no unsubscribe link", detail, fix)
  }
  const left = sender.takes_mail ? "by mail only" : "not at all, so the broadcast would be refused"
  const detail = `The public address of the server is not known: recipients can unsubscribe ${left}.`
  const fix = "Set base_url of the server to its public https URL."
  return risk(sender.takes_mail ? "medium" : "high", "There is no unsubscribe page", detail, fix)
}

const sendingStatus: AdviceRule = ({ sending: { status, reason, warning } }) => {
  const fix = "Write only to people that opened or clicked lately. The operator can lift a freeze."
  const detail = `Belfry refuses ${status === "frozen" ? "all" : "a share of"} its sends (${reason}).`
  const now = risk("high", `The account is ${status}`, detail, fix).deliverability_risks
  const ahead = `The account will be ${warning?.next} if this continues (${warning?.reason}).`
  const soon = risk("medium", "The rates are near a threshold", ahead, fix).deliverability_risks
  return { deliverability_risks: [...(status === "active" ? [] : now), ...(warning ? soon : [])] }
}

const MOST_SHOWN = 5
const otherDomains: AdviceRule = ({ sender, content: { link_domains } }) => {
  const own = sender?.domain && organizational(sender.domain)
  const others = link_domains.filter((domain) => domain !== own)
  if (!own || others.length === 0) return {}
  const detail = `Links lead to ${others.slice(0, MOST_SHOWN).join(", ")}. The sender is at ${own}.`
  const fix = "Link to pages below the domain of the sender where you can."
  return risk("low", "Links lead to other domains", detail, fix)
}

/** Phones show about as many characters. */
const LONGEST_SUBJECT = 60
const subjectLine: AdviceRule = ({ draft: { channel, subject }, content }) => {
  const { spam, subject_length: length } = content
  if (!subject?.trim() && channel === "email")
    return note("high", "The subject is empty", "Belfry refuses an email without a subject.")
  const shouting = spam.capitals ?? spam.exclamation
  if (shouting) return note("medium", "The subject shouts", shouting)
  if (length <= LONGEST_SUBJECT) return {}
  const detail = `It has ${length} characters. Phones show about ${LONGEST_SUBJECT}.`
  return note("low", "The subject is long", detail)
}

const imageOnly: AdviceRule = ({ sender, content: { spam } }) => {
  const fix = "Write what the images say as text, and give each image an alternative text."
  if (!sender || !spam.image_only) return {}
  return risk("medium", "The body is images alone", spam.image_only, fix)
}

const LARGEST_BYTES = 100 * 1024
const bodySize: AdviceRule = ({ sender, content: { body_bytes } }) => {
  if (!sender || body_bytes <= LARGEST_BYTES) return {}
  const detail = `The body has ${body_bytes} bytes. Some mail programs cut it at ${LARGEST_BYTES}.`
  const fix = "Remove styles that repeat, and link to long texts."
  return risk("medium", "The body is too large", detail, fix)
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** Before or ahead. A publish that has not begun reaches all members. */
const sameTopic: AdviceRule = ({ topic, topic_sends, at }) => {
  const members = Math.max(1, topic?.subscriber_count ?? 0)
  const frequency_conflicts = topic_sends.flatMap(({ audience, ...send }) => {
    const sent_at = send.started_at ?? send.scheduled_at ?? send.created_at
    const is_near = Math.abs(millisFrom(sent_at) - at) < DAY_MS
    if (!is_near || send.status === "cancelled" || send.status === "failed") return []
    const overlap_percent = Math.min(100, Math.round((100 * (audience ?? members)) / members))
    const name = `Publish to ${topic?.key}`
    const detail = `It is within 24 hours and reaches ${overlap_percent}% of the members of this topic.`
    return [{ broadcast_id: null, name, sent_at, overlap_percent, detail }]
  })
  return { frequency_conflicts }
}

const lostShare: AdviceRule = ({ draft, topic, audience }) => {
  const { sampled, refused, unreachable } = audience
  const size = draft.audience_size_estimate ?? topic?.subscriber_count ?? sampled
  const losses = [
    [refused, "Many recipients are suppressed", "are suppressed, blocked or unsubscribed"],
    [unreachable, "Many recipients are unreachable", `cannot be reached by ${draft.channel}`],
  ] as const
  const audience_warnings = losses.flatMap(([lost, title, why]) => {
    const share = lost / Math.max(1, sampled)
    if (share < 0.05) return []
    const severity = share < 0.2 ? "low" : share < 0.5 ? "medium" : "high"
    const detail = `In a sample of ${sampled}, ${lost} ${why}.`
    const affected = Math.round(share * size)
    return [{ severity, title, detail, affected } as const]
  })
  return { audience_warnings }
}

/** An hour of fewer emails says little. */
const LEAST_EMAILS = 30
const MOST_HOURS = 2

/** The hours of the day at which more people open than on the average. */
const bestHours: AdviceRule = ({ hours, at }) => {
  const known = hours.filter(({ sent }) => sent >= LEAST_EMAILS)
  const rated = known.map(({ hour, sent, opened }) => ({ hour, rate: opened / sent }))
  const mean = rated.reduce((sum, { rate }) => sum + rate, 0) / rated.length
  const better = rated.filter(({ rate }) => rate > mean).sort((one, two) => two.rate - one.rate)
  const send_time_suggestions = better.slice(0, MOST_HOURS).map(({ hour, rate }) => {
    const today = at - (at % DAY_MS) + hour * HOUR_MS
    const reason = `People opened ${percent(rate)} of the emails of this hour, and ${percent(mean)} on the average.`
    return { suggested_at: isoFrom(today > at ? today : today + DAY_MS), reason }
  })
  return { send_time_suggestions }
}

const percent = (share: number) => `${Math.round(100 * share)}%`

/** In the order of the contract (60, section 4). */
const DELIVERY = [senderDomain, unsubscribeTarget, sendingStatus, otherDomains]
const CONTENT = [subjectLine, imageOnly, bodySize]
const RULES = [...DELIVERY, ...CONTENT, sameTopic, lostShare, bestHours]

/** The advisory by rules alone. */
export function adviseByRules(facts: AdviceFacts): Advisory {
  const lists = joined(RULES.map((rule) => rule(facts)))
  const { deliverability_risks, audience_warnings, content_notes, frequency_conflicts } = lists
  const judged = [...deliverability_risks, ...audience_warnings, ...content_notes]
  const is = (severity: Severity) => judged.some((one) => one.severity === severity)
  const conflict = frequency_conflicts.length > 0
  const titles = judged.map(({ title }) => title)
  if (conflict) titles.push("The topic gets another message within 24 hours")
  const summary = titles.length > 0 ? `${titles.join(". ")}.` : "The rules found nothing to change."
  const mild = is("medium") ? "send_with_caution" : "send"
  const recommended_action = is("high") ? "revise_before_send" : conflict ? "delay" : mild
  return { summary: summary.slice(0, MOST_SUMMARY), recommended_action, ...lists }
}
