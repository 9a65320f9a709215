import type { Static } from "@sinclair/typebox"
import type { Blobs } from "../core/blobs"
import { invalid, type Problems } from "../core/errors"
import type { Workers } from "../core/workers"
import { reply } from "../emails/channel"
import { prepare, type SendRules } from "../emails/prepare"
import { acceptedTop, SEND_ERRORS } from "../emails/schemas"
import type { RateLimits } from "../http/rate-limits"
import { type AnyRoute, type Call, projectRow, route } from "../http/route"
import { notOneAddress, parseMailbox } from "../lib/address"
import { entryOf, refuseFrozen, type SendBatcher } from "../messages/accept"
import type { Store } from "../store/store"
import { type DraftToRender, type PreviewParts, preview, previewDraft } from "./rendering"
import * as schemas from "./schemas"
import { readDraft } from "./template-input"
import * as templates from "./templates"

export interface TemplateRenderParts {
  store: Store
  workers: Workers
  rules: SendRules
  blobs: Blobs
  intake: SendBatcher
  limits: RateLimits
}

const ALL = "/v1/templates"
const RENDERS_A_MINUTE = 60

export const templateRenderRoutes = (parts: TemplateRenderParts): AnyRoute[] => [
  route({
    ...projectRow("POST", `${ALL}/{template_id}/render`, "templates:read"),
    summary: "Render a template",
    description:
      "The path takes the id or the name. The body is the object of the variables. Without a published version the newest one is rendered. At most 60 times a minute for each project.",
    body: schemas.Variables,
    query: schemas.renderQuery,
    example: { name: "Ann", number: 1042 },
    response: schemas.Rendered,
    errors: ["template_not_found", "not_found", "invalid_template", "template_render_failed"],
    handle: async ({ project_id, params, query, body }) => {
      await limit(parts, project_id)
      const data = await preview(
        previewParts(parts),
        project_id,
        { template: params.template_id, ...query },
        body,
      )
      return { data }
    },
  }),
  route({
    ...projectRow("POST", `${ALL}/render`, "templates:read"),
    summary: "Render texts that are not stored",
    description:
      "`template` has the fields of a template, and needs no name. At most 60 times a minute for each project.",
    body: schemas.DraftRendering,
    example: { template: { html: "<p>Hello {{name}}</p>" }, variables: { name: "Ann" } },
    read: readRendering,
    response: schemas.Rendered,
    errors: ["invalid_template", "template_render_failed"],
    handle: async ({ project_id, body }) => {
      await limit(parts, project_id)
      return { data: await previewDraft(previewParts(parts), project_id, body) }
    },
  }),
  route({
    ...projectRow("POST", `${ALL}/{template_id}/test-send`, "email:send", 201),
    summary: "Send a template to one address as a test",
    description:
      "The email is sent from the default sender of the project. Without `version` it is the published one, else the newest.",
    sends: true,
    body: schemas.TestSending,
    example: { to: "ann@example.com", variables: { name: "Ann", number: 1042 } },
    response: schemas.TestSent,
    top: acceptedTop,
    errors: [...SEND_ERRORS, "not_found"],
    idempotent: true,
    handle: (call) => sendTest(parts, call),
  }),
]

const limit = ({ limits }: TemplateRenderParts, project_id: string) =>
  limits.take(`template_render:${project_id}`, RENDERS_A_MINUTE, "template_render")

const NOBODY = "preview"

/** A preview shows where links stand; they lead nowhere. */
const PREVIEW_ADDRESS = "https://preview.invalid"

const previewParts = ({ rules, workers }: TemplateRenderParts): PreviewParts => ({
  ...rules.templates,
  workers,
  pages: rules.unsubscribe.urlsOf(NOBODY, PREVIEW_ADDRESS),
})

const readRendering = (
  { template, variables = {}, channel, locale }: Static<typeof schemas.DraftRendering>,
  problems: Problems,
): DraftToRender => ({ template: readDraft(template, problems), variables, channel, locale })

type TestCall = Call<Static<typeof schemas.TestSending>, unknown, { template_id: string }>

async function sendTest(parts: TemplateRenderParts, call: TestCall) {
  const { store, rules, blobs, intake } = parts
  const { caller, claim, body, signal, params } = call
  await refuseFrozen(store.read, caller, "email", 1)
  const to = parseMailbox(body.to)
  if (!to) throw invalid("to", "invalid_email", notOneAddress(body.to))
  const row = await templates.find(store.read, caller.project_id, params.template_id)
  const email = {
    ...{ to, from: undefined, cc: [], bcc: [], subject: "", html: null, text: null, reply_to: [] },
    ...{ tags: [], metadata: {}, headers: {}, attachments: [], category: null },
    ...{ track_opens: null, track_clicks: null },
    template: row.id,
    template_version: body.version ?? row.published_version ?? row.version,
    variables: body.variables ?? {},
  }
  const origin = { source: "api", batch_id: null, idempotency_key: claim?.key ?? null } as const
  const message = await prepare(email, { caller, signal, ...origin }, rules, blobs)
  return short(await intake.submit(entryOf(message, caller), call, short))
}

function short(message: Parameters<typeof reply>[0]) {
  const { top, data } = reply(message)
  const { id, status } = data
  return { top, data: { id, status } }
}
