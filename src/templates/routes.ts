import type { Static } from "@sinclair/typebox"
import type { Workers } from "../core/workers"
import { Deleted, deleted } from "../http/field-schemas"
import { answerOnce } from "../http/idempotency"
import { type Cursors, listPage } from "../http/page"
import { type AnyRoute, type Call, projectRow, route } from "../http/route"
import { lastSent } from "../messages/message-list"
import type { ListWindow } from "../store/rows"
import type { Reader, Store, Tx } from "../store/store"
import * as schemas from "./schemas"
import { readTemplate, readTemplateChanges } from "./template-input"
import * as templates from "./templates"
import * as writing from "./writing"

export interface TemplateParts {
  store: Store
  cursors: Cursors
  workers: Workers
  template_uses: templates.TemplateUses
}

const ALL = "/v1/templates"
const ONE = `${ALL}/{template_id}` as const

const READ = "templates:read"
const WRITE = "templates:write"

export const templateRoutes = (parts: TemplateParts): AnyRoute[] => [
  ...makingRoutes(parts),
  ...readingRoutes(parts),
  ...changingRoutes(parts),
  ...versionRoutes(parts),
]

type OfTemplate<Body = unknown, Query = unknown> = Call<Body, Query, { template_id: string }>

/** The record as it is now, with the texts of its newest version or of another one. */
async function toResponse(
  { template_uses }: TemplateParts,
  db: Reader,
  row: templates.TemplateRow,
  version = row.version,
) {
  const [{ content }, used_by, sent] = await Promise.all([
    writing.findVersion(db, row, version),
    template_uses.shown(db, row.project_id, row.id),
    lastSent(db, row.project_id, [row.id]),
  ])
  const around = { used_by, last_sent_at: sent.get(row.id) ?? null }
  return templates.toResponse(row, { version, content }, around)
}

const makingRoutes = (parts: TemplateParts): AnyRoute[] => [
  route({
    ...projectRow("POST", ALL, WRITE, 201),
    summary: "Make a template",
    description:
      "The texts are Handlebars. The template is published at once unless `draft` is set. `subject`, `html` and `text` are the channel email.",
    body: schemas.TemplateInput,
    example: schemas.EXAMPLE,
    readRaw: readTemplate,
    response: schemas.TemplateRecord,
    errors: ["conflict", "invalid_template"],
    idempotent: true,
    handle: async (call) => {
      const { labels, written } = await writing.validateNew(parts, call.caller, call.body)
      return answerOnce(parts.store, call.claim, async (tx) =>
        toResponse(parts, tx, await templates.create(tx, call.caller, labels, written)),
      )
    },
  }),
  route({
    ...projectRow("POST", `${ONE}/duplicate`, WRITE, 201),
    summary: "Copy a template",
    description:
      "The copy has the texts of the newest version. Without `name` it is called `<name>-copy`, then `<name>-copy-2` and so on.",
    body: schemas.Duplicating,
    example: { name: "receipt-2027" },
    response: schemas.TemplateRecord,
    errors: ["template_not_found", "conflict"],
    idempotent: true,
    handle: ({ caller, params, body, claim }) =>
      answerOnce(parts.store, claim, async (tx) =>
        toResponse(parts, tx, await writing.duplicate(tx, caller, params.template_id, body.name)),
      ),
  }),
]

type TemplateQuery = Static<typeof schemas.templateQuery>

const readingRoutes = (parts: TemplateParts): AnyRoute[] => [
  route({
    ...projectRow("GET", ALL, READ),
    summary: "List templates, newest first",
    description: "The list has no texts. `search` looks at names and descriptions.",
    query: schemas.templateQuery,
    response: schemas.ListedTemplate,
    handle: (call) => list(parts, call),
  }),
  route({
    ...projectRow("GET", ONE, READ),
    summary: "Show one template with the texts of its newest version",
    description: "The path takes the id alone. Rendering and sends also take the name.",
    response: schemas.TemplateRecord,
    errors: ["template_not_found"],
    handle: async ({ project_id, params }) => {
      const { read } = parts.store
      const row = await templates.find(read, project_id, params.template_id)
      return { data: await toResponse(parts, read, row) }
    },
  }),
]

function list(
  { store, cursors, template_uses }: TemplateParts,
  call: Call<unknown, TemplateQuery>,
) {
  const { project_id, query } = call
  const filter = templates.matching(query)
  const rows = templates.template.list(store.read, project_id, { filter })
  return listPage(call, cursors, {
    ...rows,
    list: async (window) => {
      const page = await rows.list(window)
      const ids = page.rows.map(({ id }) => id)
      const sent = await lastSent(store.read, project_id, ids)
      const shown = page.rows.map(async (row) => {
        const used_by = await template_uses.shown(store.read, project_id, row.id)
        return templates.listedTemplate(row, { used_by, last_sent_at: sent.get(row.id) ?? null })
      })
      return { rows: await Promise.all(shown), end: page.end }
    },
  })
}

const changingRoutes = (parts: TemplateParts): AnyRoute[] => [
  route({
    ...projectRow("PATCH", ONE, WRITE),
    summary: "Change a template, as a new version",
    description:
      "Fields that are absent stay as they are. The new version is published if sends use the newest one and `draft` is not set.",
    body: schemas.TemplatePatch,
    example: { subject: "Your receipt" },
    readRaw: readTemplateChanges,
    response: schemas.TemplateRecord,
    errors: ["template_not_found", "conflict", "invalid_template"],
    handle: (call) => change(parts, call, false),
  }),
  route({
    ...projectRow("PUT", ONE, WRITE),
    summary: "Replace a template, as a new version",
    description:
      "Fields that are absent become empty. The new version is published unless `draft` is set.",
    body: schemas.TemplateInput,
    example: schemas.EXAMPLE,
    readRaw: readTemplate,
    response: schemas.TemplateRecord,
    errors: ["template_not_found", "conflict", "invalid_template"],
    handle: (call) => change(parts, call, true),
  }),
  route({
    ...projectRow("DELETE", ONE, WRITE),
    summary: "Delete a template and its versions",
    description: "A template in use is refused with 409. `force=true` deletes it all the same.",
    query: schemas.deleteQuery,
    response: Deleted,
    errors: ["template_not_found", "conflict"],
    handle: async ({ caller, params: { template_id }, query: { force = false } }) => {
      const { store, template_uses: uses } = parts
      await store.tx((tx) => templates.remove(tx, caller, template_id, { force, uses }))
      return deleted(template_id)
    },
  }),
]

async function change(
  parts: TemplateParts,
  { caller, params, body }: OfTemplate<Parameters<typeof writing.change>[3]>,
  whole: boolean,
) {
  const row = await writing.change(parts, caller, params.template_id, body, whole)
  return { data: await toResponse(parts, parts.store.read, row) }
}

/** Does something with a template in a transaction, and answers with what came of it. */
const inTx = (parts: TemplateParts, work: (tx: Tx) => Promise<templates.TemplateRow>) =>
  parts.store.tx(async (tx) => ({ data: await toResponse(parts, tx, await work(tx)) }))

const versionRoutes = (parts: TemplateParts): AnyRoute[] => [
  route({
    ...projectRow("POST", `${ONE}/publish`, WRITE),
    summary: "Publish a version, for sends to use",
    description: "Without `version` it is the newest one. An archived template comes back.",
    body: schemas.Publishing,
    example: { version: 2 },
    response: schemas.TemplateRecord,
    errors: ["template_not_found", "not_found", "conflict", "invalid_template"],
    handle: ({ caller, params: { template_id }, body: { version } }) =>
      inTx(parts, (tx) =>
        writing.publish(tx, caller, template_id, { version, uses: parts.template_uses }),
      ),
  }),
  route({
    ...projectRow("POST", `${ONE}/archive`, WRITE),
    summary: "Archive a template",
    description: "Sends refuse it from now on. Publishing it brings it back.",
    response: schemas.TemplateRecord,
    errors: ["template_not_found", "conflict"],
    handle: ({ caller, params }) =>
      inTx(parts, (tx) => templates.archive(tx, caller, params.template_id, parts.template_uses)),
  }),
  route({
    ...projectRow("GET", `${ONE}/versions`, READ),
    summary: "List the versions of a template, newest first",
    description: "Versions never change. Every write makes a new one.",
    query: schemas.versionQuery,
    response: schemas.TemplateVersion,
    errors: ["template_not_found"],
    handle: (call) => listVersions(parts, call),
  }),
  route({
    ...projectRow("GET", `${ONE}/versions/{version}`, READ),
    summary: "Show a template with the texts of one version",
    description: "`version` is the number of that version. Name, status and tags are those of now.",
    response: schemas.TemplateRecord,
    errors: ["template_not_found", "not_found"],
    handle: async ({ project_id, params }) => {
      const { read } = parts.store
      const row = await templates.find(read, project_id, params.template_id)
      return { data: await toResponse(parts, read, row, writing.versionOf(params.version)) }
    },
  }),
  route({
    ...projectRow("POST", `${ONE}/rollback`, WRITE),
    summary: "Go back to the texts of an old version",
    description: "Makes a new version with the texts of the old one, and publishes it.",
    body: schemas.Rollback,
    example: { version: 1 },
    response: schemas.TemplateRecord,
    errors: ["template_not_found", "not_found", "conflict", "invalid_template"],
    handle: ({ caller, params: { template_id }, body: { version } }) =>
      inTx(parts, (tx) =>
        writing.rollBack(tx, caller, template_id, { version, uses: parts.template_uses }),
      ),
  }),
]

type VersionQuery = Static<typeof schemas.versionQuery>

async function listVersions(
  { store, cursors }: TemplateParts,
  call: OfTemplate<unknown, VersionQuery>,
) {
  const row = await templates.find(store.read, call.project_id, call.params.template_id)
  const rows = {
    find: async (number: string) => writing.findVersion(store.read, row, writing.versionOf(number)),
    list: (window: ListWindow) => writing.listVersions(store.read, row, window),
  }
  return listPage(
    call,
    cursors,
    rows,
    ({ version, created_by: { type, id }, created_at, note }) => ({
      version,
      published: row.status === "published" && row.published_version === version,
      created_by: { type, id },
      created_at,
      note,
    }),
  )
}
