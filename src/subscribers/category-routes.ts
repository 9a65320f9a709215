import { nounRows } from "../http/noun-rows"
import { type ListParts, pageQuery } from "../http/page"
import type { AnyRoute } from "../http/route"
import { refuseUsed } from "../operations/category-use"
import { Category, CategoryPatch, category, change, create, NewCategoryBody } from "./categories"

const ALL = "/v1/subscribers/categories"
const ONE = `${ALL}/{category_id}`

export const categoryRoutes = (parts: ListParts): AnyRoute[] => {
  const scopes = ["subscribers:read", "subscribers:write"] as const
  const rows = nounRows(category, Category, scopes, parts)
  return [
    rows.list(ALL, {
      summary: "List the categories of the project, newest first",
      description: "A category is a kind of message. Subscribers choose which of them they get.",
      query: pageQuery({}),
    }),
    rows.create(ALL, {
      summary: "Create a category",
      description:
        "With its first category, a project's sends may name only categories that exist. 409 means that the slug is taken.",
      body: NewCategoryBody,
      example: { name: "Newsletter", default: "off" },
      errors: ["conflict"],
      create,
    }),
    rows.get(ONE, {
      summary: "Show one category",
      description: "With its slug, which sends and preferences name.",
    }),
    rows.change(ONE, {
      summary: "Change a category",
      description: "What the body does not name stays as it is. The slug never changes.",
      body: CategoryPatch,
      example: { description: "News of the month." },
      change,
    }),
    rows.remove(ONE, {
      summary: "Delete a category",
      description:
        "409 means that a message that waits, or a publish that is not over, names it. What subscribers chose about it stays stored for a category with the same slug.",
      errors: ["conflict"],
      remove: async (tx, caller, row) => {
        await refuseUsed(tx, row)
        await category.remove(tx, caller, row)
      },
    }),
  ]
}
