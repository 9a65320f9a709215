import type { Blobs } from "../core/blobs"
import type { Problems } from "../core/errors"
import { readTemplateFields, type TemplateFields } from "../emails/fields"
import { prepare, type Sender, type SendRules } from "../emails/prepare"
import type { Mailbox } from "../lib/address"
import type { NewMessage } from "../messages/pipeline"
import { isBlocked, subscriberOf } from "../messages/send-fields"
import { refuseAllSuppressed } from "../messages/suppressed"
import type { TrackingWish } from "../tracking/choice"
import type { SubmittedMail } from "./submitted-mail"

const TEMPLATE = "X-Svc-Template-Id"
const VARIABLES = "X-Svc-Variables"

/** The fields of the API that two of the option headers give. */
const FIELDS: Record<string, "template_id" | "variables"> = {
  template_id: "template_id",
  variables: "variables",
}

/** What the option headers say of a template (contract 22, section 1); undefined where they say nothing. */
export function readTemplateOptions(
  { options, files }: SubmittedMail,
  problems: Problems,
): TemplateFields | undefined {
  const given: Partial<Record<"template_id" | "variables", unknown>> = {}
  for (const [name, value] of options.others) {
    const field = FIELDS[name.slice("X-Svc-".length).toLowerCase().replaceAll("-", "_")]
    if (field === "template_id") given.template_id = value
    if (field === "variables") given.variables = parsed(value, problems)
  }
  if (given.template_id === undefined && given.variables === undefined) return undefined
  if (given.template_id === undefined) {
    problems.add(VARIABLES, "invalid", `${VARIABLES} needs ${TEMPLATE} beside it.`)
  }
  if (files.length > 0) {
    const hint = "The template takes the place of the whole message. Leave the attachments out."
    problems.add(TEMPLATE, "invalid", hint)
  }
  return readTemplateFields(given, problems)
}

function parsed(value: string, problems: Problems): unknown {
  try {
    return JSON.parse(value)
  } catch {
    return problems.add(VARIABLES, "invalid", "The value must be a JSON object.")
  }
}

interface TemplateMail
  extends Pick<SubmittedMail, "from" | "reply_to">,
    TemplateFields,
    TrackingWish,
    Pick<NewMessage, "tags" | "metadata"> {
  category: string | null
  subscriber_id: string | null
  scheduled_at: string | null
}

/**
 * One message for each recipient, with the texts of the template in the place of the submitted ones. As
 * for submitted bytes, a suppressed recipient beside others fails alone, before its message leaves.
 */
export async function prepareTemplate(
  { from, reply_to, template, variables, ...options }: TemplateMail,
  recipients: Mailbox[],
  sender: Sender,
  rules: SendRules,
  blobs: Blobs,
): Promise<NewMessage[]> {
  const messages: NewMessage[] = []
  const { tags, metadata, category, subscriber_id, scheduled_at } = options
  const { track_opens, track_clicks } = options
  for (const to of recipients) {
    const email = {
      ...{ to, from, cc: [], bcc: [], subject: "", html: null, text: null, reply_to },
      ...{ tags, metadata, headers: {}, attachments: [] },
      ...{ category, subscriber_id, scheduled_at },
      ...{ template, variables, track_opens, track_clicks },
    }
    messages.push(await prepare(email, { ...sender, suppressions: [] }, rules, blobs))
  }
  const { project_id } = sender.caller
  const [first] = messages // a mail to a subscriber has one recipient
  const subscriber = first ? await subscriberOf(rules.audience, first) : null
  if (!isBlocked({ subscriber }))
    await refuseAllSuppressed(rules.suppressions, project_id, recipients, { category })
  return messages
}
