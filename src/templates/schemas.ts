import { Type as t } from "@sinclair/typebox"
import { ACTOR_TYPES } from "../audit-log/tables"
import { aliasOf, nameText, notOffered, oneOf } from "../http/field-schemas"
import { pageQuery } from "../http/page"
import { AUDIENCE_CHANNELS } from "../lib/preferences"
import { count, flag, id, maybe, rarely, text as sample, time, word } from "../lib/record-fields"
import { TEMPLATE_NAME } from "./limits"

const LONGEST_DESCRIPTION = 500
const LONGEST_KEY = 100
const LONGEST_TAG = 100
const LONGEST_LOCALE = 35
const MOST_TAGS = 10
const MOST_VARIABLES = 200
const MOST_LOCALES = 50

const TEMPLATE_STATUSES = ["draft", "published", "archived"] as const
export type TemplateStatus = (typeof TEMPLATE_STATUSES)[number]

const VARIABLE_TYPES = ["string", "number", "boolean", "object", "array", "date", "url"] as const

const texts = (description: string) => t.Optional(t.Union([t.String({ description }), t.Null()]))
const line = t.String({ minLength: 1 })

const subject = texts("Handlebars. The rendered subject must be one line.")
const html = texts("Handlebars. Values are escaped for HTML.")
const text = texts("Handlebars. Without it, the text is made from `html`.")

const orNothing = <Schema extends Parameters<typeof t.Optional>[0]>(schema: Schema) =>
  t.Optional(t.Union([schema, t.Null()]))

const channels = t.Optional(
  t.Object(
    {
      email: orNothing(
        t.Object({
          subject,
          html,
          text,
          preheader: texts("The line that mail programs show beside the subject."),
        }),
      ),
      push: orNothing(
        t.Object({
          title: line,
          body: line,
          image_url: texts("URL of an image."),
          data: t.Optional(t.Record(t.String(), t.String())),
          url: texts("Where a tap leads to."),
        }),
      ),
      sms: orNothing(t.Object({ body: line })),
      in_app: orNothing(
        t.Object({
          title: line,
          body: texts("Text below the title."),
          action_url: texts("Where the button leads to."),
          action_label: texts("Text of the button."),
        }),
      ),
    },
    { description: "The texts of each channel. `subject`, `html` and `text` are those of email." },
  ),
)

const variable = t.Object({
  key: t.String({ minLength: 1, maxLength: LONGEST_KEY }),
  type: oneOf(...VARIABLE_TYPES),
  required: t.Optional(t.Boolean({ default: false })),
  fallback: t.Optional(t.Unknown({ description: "The value of a variable that is not given." })),
  fallback_value: aliasOf("fallback", t.Unknown()),
  description: orNothing(t.String({ maxLength: LONGEST_DESCRIPTION })),
})

const localeTag = t.String({ minLength: 2, maxLength: LONGEST_LOCALE })

const name = t.String({
  pattern: TEMPLATE_NAME,
  description: "1 to 100 characters: a-z, 0-9, `_`, `.` and `-`. Unique in the project.",
})

const fields = {
  name,
  description: orNothing(nameText(LONGEST_DESCRIPTION)),
  subject,
  html,
  text,
  channels,
  variables: t.Optional(t.Array(variable, { maxItems: MOST_VARIABLES })),
  layout_id: texts("A template whose html has {{{content}}}."),
  locale: orNothing(localeTag),
  locales: t.Optional(
    t.Record(localeTag, t.Object({ subject, html, text, channels }), {
      maxProperties: MOST_LOCALES,
      description: "Texts of other languages, by BCP 47 tag.",
    }),
  ),
  tags: t.Optional(t.Array(nameText(LONGEST_TAG), { maxItems: MOST_TAGS })),
  draft: t.Optional(
    t.Boolean({ default: false, description: "`true` does not publish the new version." }),
  ),
  alias: notOffered(),
  from: notOffered(),
  reply_to: notOffered(),
}

export const TemplateInput = t.Object(fields)
export const TemplatePatch = t.Partial(TemplateInput)

export const templateQuery = pageQuery({
  search: t.Optional(
    t.String({ maxLength: 200, description: "A part of the name or of the description." }),
  ),
  channel: t.Optional(oneOf(...AUDIENCE_CHANNELS)),
  status: t.Optional(oneOf(...TEMPLATE_STATUSES)),
  tag: t.Optional(t.String({ maxLength: LONGEST_TAG })),
})

export const versionQuery = pageQuery({})

export const deleteQuery = t.Object({
  force: t.Optional(t.Boolean({ description: "Delete the template although something uses it." })),
})

export const renderQuery = t.Object({
  channel: t.Optional(oneOf(...AUDIENCE_CHANNELS)),
  version: t.Optional(t.Integer({ minimum: 1, description: "Default: the published version." })),
  locale: t.Optional(
    t.String({
      maxLength: LONGEST_LOCALE,
      minLength: 2,
      description: "The language of the texts.",
    }),
  ),
})

export const Variables = t.Record(t.String(), t.Unknown(), {
  description: "The variables by name.",
})

const { name: _, draft: __, tags: ___, description: ____, ...draftFields } = fields

export const DraftRendering = t.Object({
  template: t.Object({ ...draftFields, name: t.Optional(name) }),
  variables: t.Optional(Variables),
  channel: t.Optional(oneOf(...AUDIENCE_CHANNELS)),
  locale: t.Optional(localeTag),
})

export const TestSending = t.Object({
  to: t.String({ maxLength: 998 }),
  variables: t.Optional(Variables),
  version: t.Optional(t.Integer({ minimum: 1 })),
})

const versionNumber = t.Integer({ minimum: 1, maximum: 1_000_000_000 })

export const Publishing = t.Object({ version: t.Optional(versionNumber) })
export const Rollback = t.Object({ version: versionNumber })
export const Duplicating = t.Object({ name: t.Optional(name) })

const HTML = "<p>Hello {{name}}, thank you.</p>"
const SUBJECT = "Your receipt {{number}}"

const shownTexts = {
  subject: maybe(sample(SUBJECT)),
  html: maybe(sample(HTML)),
  text: rarely(sample("Hello {{name}}, thank you.")),
}

export const ChannelTextsRecord = t.Object(
  {
    email: t.Optional(t.Object({ ...shownTexts, preheader: rarely(sample("Thank you")) })),
    push: t.Optional(
      t.Object({
        title: sample("Order {{number}}"),
        body: sample("It is on its way."),
        image_url: rarely(sample("https://example.com/order.png")),
        data: t.Record(t.String(), t.String()),
        url: rarely(sample("https://example.com/orders")),
      }),
    ),
    sms: t.Optional(t.Object({ body: sample("Your code is {{code}}.") })),
    in_app: t.Optional(
      t.Object({
        title: sample("Order {{number}}"),
        body: rarely(sample("It is on its way.")),
        action_url: rarely(sample("https://example.com/orders")),
        action_label: rarely(sample("Show")),
      }),
    ),
  },
  {
    title: "TemplateChannels",
    examples: [{ email: { subject: SUBJECT, html: HTML, text: null, preheader: null } }],
  },
)

export const VariableRecord = t.Object(
  {
    key: sample("name"),
    type: word(VARIABLE_TYPES),
    required: flag(true),
    fallback: t.Unknown({ examples: [null] }),
    description: rarely(sample("The first name")),
  },
  { title: "TemplateVariable" },
)

const uses = (what: string) =>
  t.Array(t.Object({ id: id(), name: sample("welcome") }), {
    examples: [[]],
    description: `The ${what} that use the template.`,
  })

const UsedBy = t.Object(
  { workflows: uses("workflows"), broadcasts: uses("broadcasts") },
  { title: "TemplateUse" },
)

const summary = {
  id: id(),
  project_id: id(),
  name: sample("receipt"),
  description: rarely(sample("Sent after an order")),
  status: word(["published", "draft", "archived"]),
  version: count(3, "The newest version."),
  published_version: maybe(count(3, "The version that sends use.")),
  subject: shownTexts.subject,
  variables: t.Array(VariableRecord),
  detected_variables: t.Array(sample("name"), {
    examples: [["name", "number"]],
    description: "The variables that the texts use.",
  }),
  layout_id: rarely(id()),
  locale: rarely(sample("en")),
  tags: t.Array(sample("orders")),
  used_by: UsedBy,
  last_sent_at: rarely(time("When the newest stored message of this template was accepted.")),
  created_at: time(),
  updated_at: time(),
  published_at: maybe(time()),
}

const localeName = sample("de")

export const ListedTemplate = t.Object(
  { ...summary, locales: t.Array(t.Object({ locale: localeName }), { examples: [[]] }) },
  { title: "TemplateSummary", description: "A template in a list, without its texts." },
)

export const TemplateRecord = t.Object(
  {
    ...summary,
    html: shownTexts.html,
    text: shownTexts.text,
    channels: ChannelTextsRecord,
    locales: t.Array(
      t.Object({ locale: localeName, ...shownTexts, channels: ChannelTextsRecord }),
      { examples: [[]] },
    ),
  },
  { title: "Template" },
)

export const TemplateVersion = t.Object(
  {
    version: count(3),
    published: flag(true, "Whether sends use this version."),
    created_by: t.Object({ type: word(ACTOR_TYPES), id: maybe(id()) }),
    created_at: time(),
    note: rarely(sample("Rolled back to version 1.")),
  },
  { title: "TemplateVersion" },
)

export const Rendered = t.Object(
  {
    template_id: maybe(id("Null for a draft in the request.")),
    version: maybe(count(3)),
    channel: word(AUDIENCE_CHANNELS),
    subject: maybe(sample("Your receipt 1042")),
    html: maybe(sample("<p>Hello Ann, thank you.</p>")),
    text: maybe(sample("Hello Ann, thank you.")),
    preheader: rarely(sample("Thank you")),
    title: rarely(sample("Order 1042")),
    body: rarely(sample("It is on its way.")),
    missing_variables: t.Array(sample("number"), {
      examples: [[]],
      description: "Declared variables without a value.",
    }),
    unknown_variables: t.Array(sample("nmae"), {
      examples: [[]],
      description: "Given variables that no text uses.",
    }),
    size_bytes: count(1284, "Bytes of all rendered texts."),
    sms: rarely(
      t.Object({ encoding: word(["gsm7", "ucs2"]), segments: count(1) }, { title: "SmsSize" }),
    ),
  },
  { title: "RenderedTemplate" },
)

export const TestSent = t.Object({ id: id(), status: t.Literal("queued") }, { title: "TestSent" })

export const EXAMPLE = {
  name: "receipt",
  subject: SUBJECT,
  html: HTML,
  variables: [{ key: "name", type: "string", required: true }],
  tags: ["orders"],
}
