import type { Static } from "@sinclair/typebox"
import { Deleted, deleted } from "../http/field-schemas"
import { answerOnce } from "../http/idempotency"
import { type ListParts, listPage, pageQuery } from "../http/page"
import { type AnyRoute, type Method, projectRow, route } from "../http/route"
import { AUDIENCE_CHANNELS } from "../lib/preferences"
import { refuseUsed } from "../operations/category-use"
import * as categories from "./categories"
import { Category, CategoryPatch, NewCategoryBody } from "./category-schemas"

const ALL = "/v1/subscribers/categories"
const ONE = `${ALL}/{category_id}` as const

const by = <const Path extends string>(method: Method, path: Path, status = 200) =>
  projectRow(method, path, method === "GET" ? "subscribers:read" : "subscribers:write", status)

export const categoryRoutes = (parts: ListParts): AnyRoute[] => [
  ...listRoutes(parts),
  ...oneRoutes(parts),
]

const listRoutes = ({ store, cursors }: ListParts): AnyRoute[] => [
  route({
    ...by("GET", ALL),
    summary: "List the categories of the project, newest first",
    description: "A category is a kind of message. Subscribers choose which of them they get.",
    query: pageQuery({}),
    response: Category,
    handle: (call) =>
      listPage(call, cursors, categories.list(store.read, call.project_id), categories.shown),
  }),
  route({
    ...by("POST", ALL, 201),
    summary: "Create a category",
    description:
      "With its first category, a project's sends may name only categories that exist. 409 means that the slug is taken.",
    body: NewCategoryBody,
    example: { name: "Newsletter", default: "off" },
    response: Category,
    errors: ["conflict"],
    idempotent: true,
    handle: ({ caller, body, claim }) =>
      answerOnce(store, claim, async (tx) =>
        categories.shown(
          await categories.create(tx, caller, {
            name: body.name,
            slug: body.slug,
            description: body.description ?? null,
            critical: body.critical ?? false,
            default: body.default ?? "on",
            visibility: body.visibility ?? "public",
            channels: body.channels ?? [...AUDIENCE_CHANNELS],
          }),
        ),
      ),
  }),
]

const oneRoutes = ({ store }: ListParts): AnyRoute[] => [
  route({
    ...by("GET", ONE),
    summary: "Show one category",
    description: "With its slug, which sends and preferences name.",
    response: Category,
    handle: async ({ project_id, params }) => ({
      data: categories.shown(await categories.find(store.read, project_id, params.category_id)),
    }),
  }),
  route({
    ...by("PATCH", ONE),
    summary: "Change a category",
    description: "What the body does not name stays as it is. The slug never changes.",
    body: CategoryPatch,
    example: { description: "News of the month." },
    response: Category,
    handle: async ({ caller, params, body }) => {
      const change = changeIn(body)
      const row = await store.tx((tx) => categories.patch(tx, caller, params.category_id, change))
      return { data: categories.shown(row) }
    },
  }),
  route({
    ...by("DELETE", ONE),
    summary: "Delete a category",
    description:
      "409 means that a message that waits, or a publish that is not over, names it. What subscribers chose about it stays stored for a category with the same slug.",
    response: Deleted,
    errors: ["conflict"],
    handle: async ({ caller, project_id, params }) => {
      await store.tx(async (tx) => {
        const row = await categories.hold(tx, project_id, params.category_id)
        await refuseUsed(tx, row)
        await categories.remove(tx, caller, row)
      })
      return deleted(params.category_id)
    },
  }),
]

/** Only the fields that may change. */
function changeIn(body: Static<typeof CategoryPatch>): categories.CategoryChange {
  const names = Object.keys(CategoryPatch.properties) as (keyof typeof body)[]
  return Object.fromEntries(
    names.flatMap((name) => (body[name] === undefined ? [] : [[name, body[name]]])),
  )
}
