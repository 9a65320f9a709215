import { type Static, Type as t } from "@sinclair/typebox"
import { ApiError, fail, type Problems } from "../core/errors"
import { now } from "../core/time"
import { unavailable } from "../http/envelope"
import { ONE_LINE, orNull } from "../http/field-schemas"
import type { Caller } from "../identity/caller"
import { comparable, domainOf, type Mailbox } from "../lib/address"
import { nameFor, type SharedContent, type SharedLanguages } from "../messages/contents"
import { keptOf } from "../messages/decided"
import type {
  ChannelPlanner,
  ChunkPlan,
  ContentQuery,
  NextRecipients,
  PublishContent,
} from "../messages/planner"
import { topicFields } from "../messages/send-fields"
import type { Envelope, NewMessage } from "../messages/tables"
import type { Reader } from "../store/store"
import type { AudienceMember } from "../subscribers/audience"
import type { SendDecision } from "../subscribers/decision"
import { packedSubscriber, templateSubscriber } from "../subscribers/template-subscriber"
import { SOURCE_BYTES } from "../templates/limits"
import type { TemplateSources } from "../templates/render-templates-task"
import { renderWith } from "../templates/rendering"
import type { TemplateContent } from "../templates/tables"
import type { KeyedSources } from "../templates/template-renderer"
import { included } from "../templates/template-sources"
import { findNamed } from "../templates/templates"
import { usableTemplate, usableTexts } from "../templates/usable-template"
import { findVersion } from "../templates/writing"
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
    const found = await emailTexts(rules, caller.project_id, asked)
    const { from = null } = (asked.content ?? {}) as Partial<InlineEmail>
    return { texts: found.texts, freeze: () => freeze(rules, caller, from, found) }
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
  { template, has_html }: EmailTexts,
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
  if (unsubscribe.takes_mail || (await publicAddress(project_id, domain)) !== undefined) return
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
  const common = await commonSubjects(rules, fan_out.id, languages.names, at)
  const subjects = common ?? (await personalSubjects(rules, next))
  return emailChunk({ fan_out, languages, at, rules, subjects })
}

async function personalSubjects(
  rules: SendRules,
  { fan_out, languages, at, members }: NextRecipients,
): Promise<Map<string, string | null>> {
  const rendered = (await members()).map(async (member) => {
    const content = contentFor(languages, member)
    return [member.id, await renderSubject(rules, fan_out.id, content, at)] as const
  })
  return new Map(await Promise.all(rendered))
}

const contentFor = (languages: SharedLanguages, member: AudienceMember): SharedContent => ({
  shared: nameFor(languages, EMAIL, member.locale),
  subscriber: packedSubscriber(templateSubscriber(member)),
})

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
  const content = contentFor(languages, member)
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

/** The texts of an email in every language that they have, by `email` and `email:<language>`. */
interface EmailTexts {
  texts: Map<string, TemplateSources>
  template: NonNullable<Envelope["template"]> | null
  has_html: boolean
}

/**
 * The texts as they are now. Throws 404 `template_not_found`, and 422 `invalid_template` or
 * `template_render_failed` for what can be the email of no recipient.
 */
async function emailTexts(
  rules: Pick<SendRules, "templates">,
  project_id: string,
  asked: ContentQuery,
): Promise<EmailTexts> {
  try {
    const found = await textsOf(rules, project_id, asked)
    for (const sources of found.texts.values()) requirePlainSubject(sources)
    return found
  } catch (error) {
    throw asked.content ? placedInContent(error) : error
  }
}

/** The same error with the field as the request names it: `content.email.subject`. */
function placedInContent(error: unknown): unknown {
  if (!(error instanceof ApiError) || !("field" in error.details)) return error
  const field = `${PLACE}${error.details.field}`
  const { code, message, details } = error
  const is_named = message.startsWith(`${details.field}: `)
  return new ApiError(code, is_named ? PLACE + message : message, { ...details, field })
}

async function textsOf(
  rules: Pick<SendRules, "templates">,
  project_id: string,
  { template, content }: ContentQuery,
): Promise<EmailTexts> {
  if (template !== null) return textsOfTemplate(rules.templates.read, project_id, template)
  if (!content) return fail("template_render_failed", NOTHING, { missing: [], reason: "empty" })
  const keyed = inlineTexts(content as InlineEmail)
  await requireSyntax(rules, project_id, keyed)
  return {
    ...requireParts(keyed.sources),
    texts: new Map([[EMAIL, keyed.sources]]),
    template: null,
  }
}

const NOTHING = "The publish has neither a template nor a content for email."

/** Values may be missing, because nobody is written to yet; a mistake in the texts is one for everybody. */
async function requireSyntax(
  { templates }: Pick<SendRules, "templates">,
  project_id: string,
  keyed: KeyedSources,
) {
  const given = { subscriber: {}, project: { id: project_id, name: "" }, now: now() }
  try {
    await renderWith(templates.renderer, keyed, given, {})
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "template_render_failed") throw error
  }
}

async function textsOfTemplate(db: Reader, project_id: string, asked: string): Promise<EmailTexts> {
  const wanted = { template: asked, channel: EMAIL }
  const { template, sources } = await usableTemplate(db, project_id, wanted)
  const row = await findNamed(db, project_id, template.id)
  const { content } = await findVersion(db, row, template.version)
  const whole = { ...content, ...template }
  const texts = new Map([[EMAIL as string, sources]])
  // A base language before those that fall back to it: `de` before `de-AT`.
  const languages = [...(await languagesOf(db, project_id, whole))]
  for (const locale of languages.sort((one, other) => one.length - other.length)) {
    const other = await usableTexts(db, project_id, whole, { channel: EMAIL, locale })
    const known = { names: new Set(texts.keys()), usual: null }
    const fallback = texts.get(nameFor(known, EMAIL, locale)) ?? sources
    if (says(other.sources) === says(fallback)) continue
    texts.set(`${EMAIL}:${locale.toLowerCase()}`, other.sources)
  }
  return { ...requireParts(sources), texts, template }
}

/** What it says, whichever language it is said to be in. */
const says = ({ texts, layouts, partials }: TemplateSources) =>
  JSON.stringify([texts.map(({ part, source }) => [part, source]), layouts, partials])

/** The languages of a template and of all that it includes. */
async function languagesOf(
  db: Reader,
  project_id: string,
  whole: TemplateContent & { id: string; name: string },
): Promise<Set<string>> {
  const around = await included(db, project_id, whole)
  const others = "missing" in around ? [] : [...around.layouts, ...around.partials.values()]
  const all = [whole, ...others.map(({ content }) => content)]
  return new Set(
    all.flatMap(({ locale, locales }) => [...Object.keys(locales), ...(locale ? [locale] : [])]),
  )
}

/** A subject that says the same to each recipient is known now. */
function requirePlainSubject({ texts }: TemplateSources): void {
  const subject = texts.find(({ part }) => part === "subject")?.source
  if (subject !== undefined && !subject.includes("{{")) requireSubject(subject)
}

function requireParts({ texts }: TemplateSources): { has_html: boolean } {
  const parts = new Set(texts.map(({ part }) => part))
  const has_html = parts.has("html")
  const has_text = has_html || parts.has("text")
  const field = !parts.has("subject") ? "subject" : has_text ? undefined : "html"
  if (field === undefined) return { has_html }
  const details = { missing: [], reason: "empty", field }
  return fail("template_render_failed", `The email has no ${field}.`, details)
}
