import { Type as t } from "@sinclair/typebox"
import type { Caller } from "../identity/caller"
import { text } from "../lib/record-fields"
import type { NewMessage } from "../messages/pipeline"
import { chosenTracking, type TrackingWish } from "../tracking/choice"
import { type FiledContent, isFiled } from "./filed-content"
import type { EmailContent } from "./prepare"
import type { RenderRules } from "./render-email"

export interface SendWarning {
  code: "no_public_address"
  message: string
}

const warning = {
  code: t.Literal("no_public_address"),
  message: text("The email is not tracked. …", "What the email leaves without, and why."),
}

/** In `meta` of a send: what the email leaves without. Absent where there is nothing to tell. */
export const SendWarnings = t.Optional(t.Array(t.Object(warning, { title: "SendWarning" })))

/** The same of a batch, each with the place of its message. */
export const BatchWarnings = t.Optional(
  t.Array(t.Object({ index: t.Integer(), ...warning }, { title: "BatchWarning" })),
)

const SET = "The public address of this server is not known. Set base_url on the server."

export const UNTRACKED = "Openings and clicks are not tracked."

/** What becomes of List-Unsubscribe where there is no page to lead to. */
export const withoutPage = (takes_mail: boolean): string =>
  takes_mail
    ? "Recipients can unsubscribe by mail only, not with one click."
    : "The email has no way to unsubscribe."

export const whyWithout = (...lacks: string[]): string => [...lacks, SET].join(" ")

type WarningRules = Pick<RenderRules, "unsubscribe" | "publicAddress">

/** What an accepted email leaves without, because links of this server would lead nowhere. */
export async function linkWarnings(
  { unsubscribe, publicAddress }: WarningRules,
  caller: Caller,
  wish: TrackingWish,
  { project_id, sender_domain, envelope, content }: NewMessage,
): Promise<SendWarning[]> {
  const texts = content as EmailContent | FiledContent
  const html = isFiled(texts) ? texts.file : texts.html // large texts lie in a file, mostly html
  const wants_tracking = envelope?.track ?? chosenTracking({ ...wish, html }, caller)
  const is_endable = envelope?.unsubscribe !== undefined
  if (!wants_tracking && !is_endable) return []
  if ((await publicAddress(project_id, sender_domain)) !== undefined) return []
  const lacks = [
    ...(wants_tracking ? [UNTRACKED] : []),
    ...(is_endable ? [withoutPage(unsubscribe.takes_mail)] : []),
  ]
  return [{ code: "no_public_address", message: whyWithout(...lacks) }]
}

/** An answer with its warnings, where there are any. */
export const warned = <Answer extends object>(answer: Answer, warnings: object[]) => ({
  ...answer,
  ...(warnings.length > 0 && { meta: { warnings: warnings as SendWarning[] } }),
})
