import { type Static, Type as t } from "@sinclair/typebox"
import { fail, type Problems } from "../core/errors"
import { unavailable } from "../http/envelope"
import { ONE_LINE, orNull } from "../http/field-schemas"
import type { Caller } from "../identity/caller"
import { comparable, domainOf, type Mailbox } from "../lib/address"
import { nameFor, namesOf } from "../messages/contents"
import { keptOf } from "../messages/decided"
import type { ChannelPlanner, ChunkPlan, NextRecipients, PublishContent } from "../messages/planner"
import { topicFields } from "../messages/send-fields"
import { contentFor, publishTexts, type TextsOfContent } from "../messages/shared-texts"
import type { Envelope, NewMessage } from "../messages/tables"
import type { AudienceMember } from "../subscribers/audience"
import type { SendDecision } from "../subscribers/decision"
import { SOURCE_BYTES } from "../templates/limits"
import type { TemplateSources } from "../templates/render-templates-task"
import { chosenTracking, trackingAtHost } from "../tracking/choice"
import { readAddress } from "./fields"
import { isReachable, newEmail, requireSendable, rulesFor, type SendRules } from "./prepare"
import { inlineTexts, requireSubject } from "./render-email"
import { commonSubjects, renderSubject } from "./shared-email"

const EMAIL = "email" as const

const EmailContent = t.Object(
  {
    subject: t.String({ minLength: 1, maxLength: SOURCE_BYTES, pattern: ONE_LINE }),
    html: t.Optional(orNull(t.String())),
    text: t.Optional(orNull(t.String({ description: "Without it, it is made from `html`." }))),
    from: t.Optional(
      t.Unknown({ description: "The sender. Default: the default sender of the project." }),
    ),
  },
  { description: "`subject`, `html` and `text` are Handlebars." },
)

/** An email that a publish brings along instead of a template. */
interface InlineEmail {
  subject: string
  html: string | null
  text: string | null
  from: Mailbox | null
}

export const emailContent: PublishContent = {
  schema: EmailContent,
  read(given, problems: Problems): InlineEmail {
    const { subject, html, text, from } = given as Static<typeof EmailContent>
    for (const [name, value] of Object.entries({ subject, html, text })) {
      if (!value?.includes("\0") && (value?.isWellFormed() ?? true)) continue
      problems.add(`${PLACE}${name}`, "invalid", BROKEN)
    }
    if (!html && !text) problems.add(`${PLACE}html`, "required", NO_TEXT)
    const sender = from == null ? null : readAddress(from, `${PLACE}from`, problems)
    return { subject, html: html || null, text: text || null, from: sender ?? null }
  },
}

const PLACE = "content.email."
const BROKEN = "The text must not contain NUL or half of a surrogate pair."
const NO_TEXT = "An email needs html or text. Give one or both."

/** What all emails of a fan-out have in common, beside their texts. */
interface FrozenEmail {
  from: Mailbox
  reply_to: Mailbox[]
  template: Envelope["template"] | null
  track: Envelope["track"] | null
}

export const emailPlanner = (rules: SendRules): ChannelPlanner => ({
  async prepare(caller, asked) {
    const { project_id } = caller
    const { texts, template } = await publishTexts(rules.templates, project_id, asked, EMAIL_TEXTS)
    const { from = null } = (asked.content ?? {}) as Partial<InlineEmail>
    const has_html = texts.get(EMAIL)?.texts.some(({ part }) => part === "html") ?? false
    return { texts, freeze: () => freeze(rules, caller, from, { template, has_html }) }
  },
  async requireReady(caller, frozen) {
    const { from } = frozen as FrozenEmail
    await requireSendable(rules, caller, domainOf(from.email), [])
  },
  begin: (next) => begin(rules, next),
})

/** Refuses what a send would: sender, domain. Where links lead nowhere, nobody could unsubscribe. */
async function freeze(
  rules: SendRules,
  caller: Caller,
  given: Mailbox | null,
  { template, has_html }: Pick<FrozenEmail, "template"> & { has_html: boolean },
): Promise<FrozenEmail> {
  const { project_id, project_settings } = caller
  const from =
    given ??
    project_settings.default_from ??
    fail("sender_not_configured", NO_SENDER, { channel: EMAIL })
  const own = await requireSendable(rules, caller, domainOf(from.email), [])
  const wish = { track_opens: null, track_clicks: null }
  const chosen = has_html ? chosenTracking(wish, caller) : undefined
  await requireWayOut(rules, project_id, own)
  const track = (chosen && (await trackingAtHost(chosen, caller, own, rules))) ?? null
  const { default_reply_to, reply_tracking } = project_settings
  const is_untracked = default_reply_to !== null && !(reply_tracking && rules.replyAddress)
  const reply_to = is_untracked ? [{ email: default_reply_to, name: null }] : []
  return { from, reply_to, template, track }
}

/** Nobody gets mail of a topic that they cannot end. */
async function requireWayOut(
  { unsubscribe, publicAddress }: SendRules,
  project_id: string,
  domain: string | null,
) {
  if (unsubscribe.mail_host !== null || (await publicAddress(project_id, domain)) !== undefined)
    return
  throw unavailable(NO_WAY_OUT, "no_public_address", 60)
}

const NO_WAY_OUT =
  "Recipients could not unsubscribe: this server receives no mail, and its public address is not known. Set base_url on the server."

const NO_SENDER =
  "The project has no default sender. Give `content.email.from`, or set default_from of the project."

/** Subjects are rendered before the transaction, because it may not wait for a thread. */
async function begin(all: SendRules, next: NextRecipients): Promise<ChunkPlan> {
  const { fan_out, languages, at } = next
  const rules = await rulesFor(all, fan_out.project_id, false)
  const common = await commonSubjects(rules, fan_out.id, namesOf(languages, EMAIL), at)
  const subjects = common ?? (await personalSubjects(rules, next))
  return emailChunk({ fan_out, languages, at, rules, subjects })
}

async function personalSubjects(
  rules: SendRules,
  { fan_out, languages, at, members }: NextRecipients,
): Promise<Map<string, string | null>> {
  const rendered = (await members()).map(async (member) => {
    const content = contentFor(languages, EMAIL, member)
    return [member.id, await renderSubject(rules, fan_out.id, content, at)] as const
  })
  return new Map(await Promise.all(rendered))
}

interface EmailChunk extends Omit<NextRecipients, "members"> {
  /** Of the project, outside of the sandbox. */
  rules: Pick<SendRules, "unsubscribe" | "replyAddress" | "to_mailbox" | "mailbox_takes_all">
  /** The subjects of the next recipients, by subscriber or by the name of their texts. */
  subjects: ReadonlyMap<string, string | null>
}

export function emailChunk(chunk: EmailChunk): ChunkPlan {
  const { rules, subjects, languages } = chunk
  return {
    isReady: ({ id, locale }) =>
      subjects.has(id) || subjects.has(nameFor(languages, EMAIL, locale)),
    addressOf: ({ email }) => (email === null ? null : comparable(email)),
    isReachable: ({ email }) => isReachable(email ?? "", rules),
    plan: (caller, member, decision) =>
      member.email === null
        ? "no_address"
        : [messageTo(chunk, caller, member, member.email, decision)],
  }
}

function messageTo(
  { fan_out, rules, languages, subjects, at }: EmailChunk,
  caller: Caller,
  member: AudienceMember,
  address: string,
  decision: SendDecision,
): NewMessage {
  const { account_id, project_id, intent } = fan_out
  const { category, api_key_id, respect_preferences } = intent
  const email = intent.email as FrozenEmail
  const { sandbox, reply_tracking } = caller.project_settings
  const content = contentFor(languages, EMAIL, member)
  const about = { project_id, address }
  const message = newEmail({
    account_id,
    project_id,
    api_key_id,
    sandbox,
    scheduled_at: decision.deferred_until,
    fan_out_id: fan_out.id,
    subscriber_id: member.id,
    category,
    to: { email: address, name: member.name },
    from: email.from,
    reply_to: email.reply_to,
    replyAddress: reply_tracking ? rules.replyAddress : undefined,
    subject: subjects.get(content.shared) ?? subjects.get(member.id) ?? "",
    source: "topic",
    stream: "broadcast",
    content,
    track: email.track ?? undefined,
    kind: {
      ...topicFields(fan_out.topic_key ?? "", category, about, rules.unsubscribe),
      decision: keptOf(decision),
      ...(email.template && { template: email.template }),
      ...(!respect_preferences && { ignores_preferences: true as const }),
    },
    template_id: email.template?.id ?? null,
  })
  message.created_at = at
  return message
}

const EMAIL_TEXTS: TextsOfContent = {
  channel: EMAIL,
  inline: (content) => inlineTexts(content as InlineEmail),
  require(sources) {
    requireParts(sources)
    requirePlainSubject(sources)
  },
}

function requireParts({ texts }: TemplateSources): void {
  const parts = new Set(texts.map(({ part }) => part))
  const has_text = parts.has("html") || parts.has("text")
  const field = !parts.has("subject") ? "subject" : has_text ? undefined : "html"
  if (field === undefined) return
  const details = { missing: [], reason: "empty", field }
  fail("template_render_failed", `The email has no ${field}.`, details)
}

/** A subject that says the same to each recipient is known now. */
function requirePlainSubject({ texts }: TemplateSources): void {
  const subject = texts.find(({ part }) => part === "subject")?.source
  if (subject !== undefined && !subject.includes("{{")) requireSubject(subject)
}
