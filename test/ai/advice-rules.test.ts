import { expect, test } from "bun:test"
import { type Advisory, merged, readAdvisory } from "../../src/ai/advice/advisory"
import { contentFacts } from "../../src/ai/advice/content-facts-task"
import type { AdviceFacts, BroadcastDraft } from "../../src/ai/advice/facts"
import { adviseByRules } from "../../src/ai/advice/rules"
import { newId } from "../../src/core/ids"
import { isoFrom } from "../../src/core/time"

const AT = Date.parse("2026-11-30T11:20:00.000Z")
const hours = (count: number) => isoFrom(AT + count * 3_600_000)

const LINK = '<p>See <a href="https://acme.example/news">what is new</a>.</p>'
const END = '<p><a href="{{unsubscribe_url}}">Unsubscribe</a></p>'
const body = `<p>Our spring catalogue is here, with more of what you liked.</p>${LINK}${END}`

const DRAFT: BroadcastDraft = {
  ...{ channel: "email", subject: "The spring catalogue", body },
  ...{ topic_key: "news", audience_size_estimate: 1000 },
}

const SENDER = {
  ...{ domain: "mail.acme.example", may_send: true, has_pages: true, takes_mail: false },
  lacking: [] as NonNullable<AdviceFacts["sender"]>["lacking"],
}

const publish = (change: object) => ({
  ...{ status: "completed" as const, audience: 400, scheduled_at: null, started_at: hours(-2) },
  ...{ created_at: hours(-3), ...change },
})

/** Facts in which the rules find nothing, but for what is changed. */
function factsOf(change: Partial<BroadcastDraft>, facts: Partial<AdviceFacts> = {}): AdviceFacts {
  const draft = { ...DRAFT, ...change }
  return {
    ...{ draft, at: AT, topic: { key: "news", subscriber_count: 400 } as AdviceFacts["topic"] },
    content: contentFacts(draft),
    sender: draft.channel === "email" ? SENDER : null,
    sending: { status: "active", reason: null, warning: null },
    ...{ topic_sends: [], audience: { sampled: 200, unreachable: 0, refused: 0 }, hours: [] },
    ...facts,
  }
}

/** One line a finding. */
const findingsOf = (found: Advisory) => [
  ...found.deliverability_risks.map(({ severity, title }) => `risk ${severity}: ${title}`),
  ...found.frequency_conflicts.map((one) => `conflict ${one.sent_at} ${one.overlap_percent}%`),
  ...found.audience_warnings.map((one) => `audience ${one.severity}: ${one.title} ${one.affected}`),
  ...found.send_time_suggestions.map(({ suggested_at }) => `time ${suggested_at}`),
  ...found.content_notes.map(({ severity, title }) => `note ${severity}: ${title}`),
]

const sender = (change: object) => ({ sender: { ...SENDER, ...change } })
const sending = (status: "active" | "throttled" | "frozen", next?: "throttled" | "frozen") => ({
  sending: { status, reason: "bounce_rate=6%", warning: next ? { next, reason: "x" } : null },
})
const sends = (...changes: object[]) => ({ topic_sends: changes.map(publish) })
const lost = (refused: number, unreachable: number, sampled = 200) => ({
  audience: { sampled, refused, unreachable },
})
const opens = (...rows: [hour: number, sent: number, opened: number][]) => ({
  hours: rows.map(([hour, sent, opened]) => ({ hour, sent, opened })),
})
const linked = (url: string) => ({ body: `${body}<a href="${url}">Shop</a>` })
const image = '<img src="https://acme.example/a.png" alt="Spring">'
const ahead = { status: "scheduled", audience: null, started_at: null, scheduled_at: hours(23) }
const shouted = {
  subject: "BUY NOW!!! TODAY",
  body: `${image}<a href="https://example.net/">x</a>`,
}

const DRAFTS: Record<string, [Partial<BroadcastDraft>, Partial<AdviceFacts>?]> = {
  "a good email": [{}],
  "no sender": [{}, sender({ domain: null, may_send: false })],
  "an unverified domain": [{}, sender({ may_send: false })],
  "a domain without DMARC": [{}, sender({ lacking: ["dmarc"] })],
  "the domain above": [{}, sender({ domain: "acme.example" })],
  "no unsubscribe pages": [{}, sender({ has_pages: false })],
  "unsubscribing by mail": [{}, sender({ has_pages: false, takes_mail: true })],
  "no unsubscribe link": [{ body: LINK }],
  "an own page": [{ body: `${LINK}<a href="https://acme.example/unsubscribe">Leave</a>` }],
  "a link to preferences": [{ body: "Hello.\nhttps://acme.example\n{{{preferences_url}}}" }],
  "a frozen account": [{}, sending("frozen")],
  "a throttled account": [{}, sending("throttled")],
  "rates near throttling": [{}, sending("active", "throttled")],
  "rates near a freeze": [{}, sending("throttled", "frozen")],
  "a link elsewhere": [linked("https://shop.example.net/x")],
  "a link beside": [linked("https://www.acme.example/x")],
  "a variable host": [linked("https://{{shop}}/x")],
  "a text elsewhere": [{ body: "See https://example.net/a and {{unsubscribe_url}}." }],
  "an address in text": [{ body: "See <https://example.net/a> and {{~unsubscribe_url}}." }],
  "a relative link": [linked("/shop")],
  capitals: [{ subject: "LAST CHANCE TODAY" }],
  "many marks": [{ subject: "Spring is here!!!" }],
  "wide marks": [{ subject: "今だけ！！" }],
  "no capitals": [{ subject: "春の新商品のお知らせです" }],
  "capitals and a name": [{ subject: "{{subscriber.name}}, NOTHING ELSE" }],
  "a name alone": [{ subject: "{{subscriber.metadata.LONG}}" }],
  "a short word": [{ subject: "NASA" }],
  "a long subject": [{ subject: "ä".repeat(61) }],
  "a subject of 60": [{ subject: "ä".repeat(60) }],
  "a long name": [{ subject: `${"ä".repeat(60)}{{subscriber.name}}` }],
  "no subject": [{ subject: " " }],
  "an image alone": [{ body: `${image}${END}` }],
  "an image with text": [{ body: `${image}<p>${"spring flowers ".repeat(12)}</p>${END}` }],
  "above 100 KB": [{ body: body.padEnd(102_401, "x") }],
  "100 KB": [{ body: body.padEnd(102_400, "x") }],
  "a publish before": [{}, sends({})],
  "a publish to some": [{}, sends({ audience: 100 })],
  "a publish ahead": [{}, sends(ahead)],
  "other publishes": [{}, sends({ started_at: hours(-24) }, { status: "cancelled" })],
  "some suppressed": [{}, lost(10, 0)],
  "a third unreachable": [{}, lost(0, 66)],
  "both shares": [{}, lost(100, 20)],
  "an empty audience": [{}, lost(0, 0, 0)],
  "hours of opens": [{}, opens([9, 100, 50], [11, 100, 20], [15, 100, 45], [20, 29, 29])],
  "one hour alone": [{}, opens([9, 100, 50])],
  "an SMS in capitals": [{ channel: "sms", subject: "SPRING SALE", body: "https://example.net" }],
  "a push message": [{ channel: "push", subject: null, body: "Hello." }],
  everything: [shouted, { ...sender({ may_send: false }), ...lost(0, 150), ...sends({}) }],
}

/** The name, the recommended action, and the findings. A draft that is not here has none, and is to be sent. */
const TABLE = `
no sender               revise_before_send  risk high: There is no sender
an unverified domain    revise_before_send  risk high: The From domain is not verified
a domain without DMARC  send_with_caution   risk medium: The From domain lacks records
no unsubscribe pages    revise_before_send  risk high: There is no unsubscribe page
unsubscribing by mail   send_with_caution   risk medium: There is no unsubscribe page
no unsubscribe link     send_with_caution   risk medium: The body has no unsubscribe link
a frozen account        revise_before_send  risk high: The account is frozen
a throttled account     revise_before_send  risk high: The account is throttled
rates near throttling   send_with_caution   risk medium: The rates are near a threshold
rates near a freeze     revise_before_send  risk high: The account is throttled  risk medium: The rates are near a threshold
a link elsewhere        send                risk low: Links lead to other domains
a text elsewhere        send                risk low: Links lead to other domains
an address in text      send                risk low: Links lead to other domains
capitals                send_with_caution   note medium: The subject shouts
many marks              send_with_caution   note medium: The subject shouts
wide marks              send_with_caution   note medium: The subject shouts
capitals and a name     send_with_caution   note medium: The subject shouts
a long subject          send                note low: The subject is long
no subject              revise_before_send  note high: The subject is empty
an image alone          send_with_caution   risk medium: The body is images alone
above 100 KB            send_with_caution   risk medium: The body is too large
a publish before        delay               conflict ${hours(-2)} 100%
a publish to some       delay               conflict ${hours(-2)} 25%
a publish ahead         delay               conflict ${hours(23)} 100%
some suppressed         send                audience low: Many recipients are suppressed 50
a third unreachable     send_with_caution   audience medium: Many recipients are unreachable 330
both shares             revise_before_send  audience high: Many recipients are suppressed 500  audience low: Many recipients are unreachable 100
hours of opens          send                time 2026-12-01T09:00:00.000Z  time 2026-11-30T15:00:00.000Z
an SMS in capitals      send_with_caution   note medium: The subject shouts
everything              revise_before_send  risk high: The From domain is not verified  risk medium: The body has no unsubscribe link  risk low: Links lead to other domains  risk medium: The body is images alone  conflict ${hours(-2)} 100%  audience high: Many recipients are unreachable 750  note medium: The subject shouts
`
const ROWS = TABLE.split("\n").map((line) => line.split(/ {2,}/))

test.each(Object.keys(DRAFTS))("advice by rules: %s", (name) => {
  const advisory = adviseByRules(factsOf(...(DRAFTS[name] ?? [{}])))
  const [, action = "send", ...findings] = ROWS.find(([of]) => of === name) ?? []
  expect([advisory.recommended_action, ...findingsOf(advisory)]).toEqual([action, ...findings])
  expect(readAdvisory({ advisory })).toEqual(advisory)
  const titles = findings.flatMap((one) => /^(?:risk|note) \w+: (.*)/.exec(one)?.[1] ?? [])
  for (const title of titles) expect(advisory.summary).toContain(title)
})

const MODEL: Advisory = {
  ...{ summary: "A good draft.", recommended_action: "send_with_caution" },
  ...{ deliverability_risks: [], frequency_conflicts: [], audience_warnings: [] },
  send_time_suggestions: [{ suggested_at: hours(24), reason: "The draft says tomorrow." }],
  content_notes: [{ severity: "low", title: "It is vague", detail: "It names no price." }],
}

test("what a model says of others' messages names no broadcast, and its times are in full", () => {
  const timed = (at: string, broadcast_id: string | null) => ({
    frequency_conflicts: [{ ...conflict, broadcast_id, sent_at: at, overlap_percent: 1 }],
    send_time_suggestions: [{ suggested_at: at, reason: "" }],
  })
  const said = timed("2026-11-30T09:00:00Z", newId())
  const model = readAdvisory({ advisory: { ...MODEL, summary: "", ...said } })
  const found = merged(adviseByRules(factsOf({})), model)
  expect(found).toEqual({ ...found, ...timed("2026-11-30T09:00:00.000Z", null) })
})

test("a model's advice comes after that of the rules, and the more careful action holds", () => {
  const found = merged(adviseByRules(factsOf({ subject: "LAST CHANCE TODAY" })), MODEL)
  const notes = ["note medium: The subject shouts", "note low: It is vague"]
  expect(findingsOf(found)).toEqual([`time ${hours(24)}`, ...notes])
  expect([found.summary, found.recommended_action]).toEqual(["A good draft.", "send_with_caution"])
  const risky = adviseByRules(factsOf({}, sender({ may_send: false })))
  expect(merged(risky, MODEL).recommended_action).toBe("revise_before_send")
})

const item = { severity: "low", title: "A", detail: "B" }
const half = { ...item, affected: 0.5 }
const notes = (change: object) => ({ content_notes: [{ ...item, ...change }] })
const conflict = { broadcast_id: null, name: "A", sent_at: hours(1), detail: "B" }

test.each<[name: string, change: object, path: string]>([
  ["another field", { score: 1 }, "score"],
  ["a prototype", JSON.parse('{"__proto__": {}}'), "__proto__"],
  ["no summary", { summary: undefined }, "summary"],
  ["another action", { recommended_action: "shout" }, "recommended_action"],
  ["a long summary", { summary: "x".repeat(601) }, "summary"],
  ["another severity", notes({ severity: "dire" }), "content_notes.0.severity"],
  ["a risk without a fix", { deliverability_risks: [item] }, "deliverability_risks.0.fix"],
  ["a fix too many", notes({ fix: "C" }), "content_notes.0.fix"],
  ["no time", { send_time_suggestions: [{ reason: "A" }] }, "send_time_suggestions.0.suggested_at"],
  ["no share", { frequency_conflicts: [conflict] }, "frequency_conflicts.0.overlap_percent"],
  ["half a person", { audience_warnings: [half] }, "audience_warnings.0.affected"],
  ["too many notes", { content_notes: Array(51).fill(item) }, "content_notes"],
])("advice of a model with %s is ai_advisory_invalid", (_name, change, path) => {
  const given = Object.defineProperties({ ...MODEL }, Object.getOwnPropertyDescriptors(change))
  const fields = expect.arrayContaining([expect.objectContaining({ path: `advisory.${path}` })])
  const error = expect.objectContaining({ code: "ai_advisory_invalid", details: { fields } })
  expect(() => readAdvisory({ advisory: given })).toThrow(error)
})
