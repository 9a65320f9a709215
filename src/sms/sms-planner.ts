import { type Static, Type as t } from "@sinclair/typebox"
import { fail, type Problems } from "../core/errors"
import type { Caller } from "../identity/caller"
import { smsSegments } from "../lib/sms-segments"
import { nameFor } from "../messages/contents"
import { keptOf } from "../messages/decided"
import type {
  ChannelPlanner,
  ChunkPlan,
  NextRecipients,
  PublishContent,
  SkipReason,
} from "../messages/planner"
import { isPersonal, publishTexts, renderAll, type TextsOfContent } from "../messages/shared-texts"
import type { Envelope, MessageRefusal, NewMessage } from "../messages/tables"
import { routing } from "../providers/routing"
import type { AudienceMember } from "../subscribers/audience"
import type { SendDecision } from "../subscribers/decision"
import { SOURCE_BYTES } from "../templates/limits"
import { newText, type SmsRules } from "./prepare"
import { inlineText, requireBody } from "./render-text"
import { MOST_SEGMENTS } from "./sms-input"
import {
  expectedSender,
  firstAllowing,
  limitedCountry,
  type SmsRoute,
  smsRouting,
} from "./sms-routing"

const SMS = "sms" as const

const SmsContent = t.Object(
  {
    body: t.String({ minLength: 1, maxLength: SOURCE_BYTES }),
  },
  { description: "`body` is Handlebars. A rendered text takes at most 10 segments." },
)

type InlineText = Static<typeof SmsContent>

export const smsContent: PublishContent = {
  schema: SmsContent,
  read(given, problems: Problems): InlineText {
    const { body } = given as InlineText
    if (body.includes("\0") || !body.isWellFormed()) problems.add(PLACE, "invalid", BROKEN)
    return { body }
  },
}

const PLACE = "content.sms.body"
const BROKEN = "The text must not contain NUL or half of a surrogate pair."

/** What all texts of a fan-out have in common, beside their bodies. */
interface FrozenText {
  template: Envelope["template"] | null
}

const TEXTS: TextsOfContent = {
  channel: SMS,
  inline: (content) => inlineText((content as InlineText).body),
  /** A body that says the same to each recipient is known now. */
  require(sources) {
    const body = sources.texts.find(({ part }) => part === "body")?.source
    if (body !== undefined && isPersonal(sources)) return
    const refusal = tooLong(requireBody(body))
    if (refusal) fail("template_render_failed", refusal.text, { ...EMPTY, reason: refusal.reason })
  },
}

const EMPTY = { missing: [], field: "body" }

function tooLong(body: string): MessageRefusal | undefined {
  const { segments } = smsSegments(body)
  if (segments <= MOST_SEGMENTS) return undefined
  const text = `The text takes ${segments} segments, at most ${MOST_SEGMENTS} are allowed.`
  return { reason: "too_many_segments", text }
}

export const smsPlanner = (rules: SmsRules): ChannelPlanner => ({
  async prepare(caller, asked) {
    const { project_id } = caller
    const { texts, template } = await publishTexts(rules.templates, project_id, asked, TEXTS)
    const freeze = async (): Promise<FrozenText> => {
      await requireProvider(rules, caller)
      return { template }
    }
    return { texts, freeze }
  },
  requireReady: (caller) => requireProvider(rules, caller),
  begin: (next) => begin(rules, next),
})

/** Throws 400 `sms_not_configured`, as a send does. */
async function requireProvider({ read }: SmsRules, { project_id, project_settings }: Caller) {
  await smsRouting(read, { project_id, sandbox: project_settings.sandbox })
}

/** A body that was rendered, or why there is none for this recipient. */
type RenderedBody = string | MessageRefusal

/** Bodies are rendered before the transaction: it may not wait for a thread, and it counts their segments. */
async function begin(rules: SmsRules, next: NextRecipients): Promise<ChunkPlan> {
  const { project_id } = next.fan_out
  const routes = await routing(rules.read, "sms_provider", project_id, { recent: true })
  const bodies = await renderAll(rules.templates, SMS, next, checked)
  return textChunk({ ...next, bodies, routes })
}

function checked({ body }: Record<string, string>): RenderedBody {
  const whole = requireBody(body)
  return tooLong(whole) ?? whole
}

interface TextChunk extends Omit<NextRecipients, "members"> {
  bodies: ReadonlyMap<string, RenderedBody>
  routes: SmsRoute[]
}

function textChunk(chunk: TextChunk): ChunkPlan {
  const { bodies, languages, routes } = chunk
  return {
    isReady: ({ id, locale }) => bodies.has(id) || bodies.has(nameFor(languages, SMS, locale)),
    addressOf: ({ phone }) => phone,
    isReachable: () => routes.length > 0,
    plan: (caller, member, decision) => planned(chunk, caller, member, decision),
  }
}

/** A number whose country no configuration allows is no address that texts can be sent to. */
function planned(
  chunk: TextChunk,
  caller: Caller,
  member: AudienceMember,
  decision: SendDecision,
): NewMessage[] | SkipReason {
  const { bodies, languages, routes } = chunk
  const { phone, id, locale } = member
  const { sandbox } = caller.project_settings
  if (phone === null) return "no_address"
  const route = firstAllowing(routes, phone)
  if (!sandbox && !route && routes.length > 0) return "no_address"
  const from = sandbox ? null : expectedSender(route, phone)
  const body = bodies.get(id) ?? bodies.get(nameFor(languages, SMS, locale)) ?? ""
  const message = messageTo(chunk, member, decision, { sandbox, to: phone, from, body })
  return [sandbox ? message : { ...message, country: limitedCountry(routes, phone) }]
}

interface TextOfMember {
  sandbox: boolean
  to: string
  from: string | null
  body: RenderedBody
}

/** One that cannot be rendered, or is too long, is accepted and fails at once. It takes nothing from the quota. */
function messageTo(
  { fan_out, at }: TextChunk,
  member: AudienceMember,
  decision: SendDecision,
  { body, ...text }: TextOfMember,
): NewMessage {
  const { account_id, project_id, intent, topic_key } = fan_out
  const { category, api_key_id, respect_preferences } = intent
  const { template } = intent.sms as FrozenText
  const refused = typeof body === "string" ? undefined : body
  const message = newText({
    ...{ account_id, project_id, api_key_id, ...text },
    body: typeof body === "string" ? body : "",
    scheduled_at: decision.deferred_until,
    fan_out_id: fan_out.id,
    subscriber_id: member.id,
    category,
    source: "topic",
    stream: "broadcast",
    envelope: {
      ...(category !== null && { category }),
      topic: topic_key ?? "",
      decision: keptOf(decision),
      ...(template && { template }),
      ...(!respect_preferences && { ignores_preferences: true as const }),
    },
    template_id: template?.id ?? null,
  })
  message.created_at = at
  return refused ? { ...message, scheduled_at: null, refused } : message
}
