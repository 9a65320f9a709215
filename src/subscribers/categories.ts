import { type Static, Type as t } from "@sinclair/typebox"
import { eq } from "drizzle-orm"
import { fail, invalid } from "../core/errors"
import { nameText, oneOf, orNull } from "../http/field-schemas"
import type { Caller } from "../identity/caller"
import { noun } from "../identity/noun"
import { projects } from "../identity/tables"
import { AUDIENCE_CHANNELS } from "../lib/preferences"
import { flag, id, maybe, text, time, word } from "../lib/record-fields"
import { CATEGORY_SLUG, nearest, shortened, slugFrom } from "../lib/text"
import { cached } from "../store/cached"
import { countRows, rowForUpdate } from "../store/rows"
import { prepared } from "../store/statements"
import type { Reader, Tx } from "../store/store"
import { categories } from "./tables"

export type CategoryRow = typeof categories.$inferSelect

/** Of a project. Sends remember all of them. */
export const MOST_CATEGORIES = 200

/** How long sends on another node may go on without a category that this node has made. */
const TRUSTED_MS = 1000

const ofProjects = cached<ReadonlyMap<string, CategoryRow>>({
  tables: ["categories"],
  most: 1000,
})

/**
 * The categories of a project by slug; an empty map means that it has none. A promise only where it reads.
 * With `recent` the answer on Postgres may be a second old.
 */
export const knownCategories = (
  db: Reader,
  project_id: string,
  { recent = false } = {},
): ReadonlyMap<string, CategoryRow> | Promise<ReadonlyMap<string, CategoryRow>> =>
  ofProjects(db, project_id, () => readAll(db, project_id), recent ? TRUSTED_MS : 0)

async function readAll(db: Reader, project_id: string) {
  const rows = await findAll(db, { project_id })
  return new Map(rows.map((row) => [row.slug, row]))
}

const findAll = prepared({ project_id: categories.project_id }, (db: Reader, slot) =>
  db.select().from(categories).where(eq(categories.project_id, slot.project_id)),
)

/** Throws 422 `unknown_category` where the project has categories, and not this one. */
export async function requireCategory(
  db: Reader,
  project_id: string,
  slug: string | null | undefined,
): Promise<void> {
  if (slug != null) requireAmong(await knownCategories(db, project_id), slug)
}

/** As `requireCategory`, of categories that were read. */
export function requireAmong(known: ReadonlyMap<string, unknown>, slug: string): void {
  if (known.size === 0 || known.has(slug)) return
  throw invalid("category", UNKNOWN_CATEGORY, noSuchCategory(slug, known.keys()))
}

export const UNKNOWN_CATEGORY = "unknown_category"

/** What people are told of a slug that the project does not have. One of `known` that is near is offered. */
export function noSuchCategory(slug: string, known: Iterable<string>): string {
  const name = shortened(slug)
  const near = nearest(name, [...known])
  const hint = near ? ` The nearest is ${near}.` : ""
  return `The project has no category ${JSON.stringify(name)}.${hint} GET /v1/subscribers/categories lists all.`
}

export const category = noun({
  name: "category",
  table: categories,
  missing: () => fail("not_found", "There is no such category."),
  unique: {
    column: "slug",
    message: (slug) => `Another category has the slug ${slug}. Choose another slug.`,
  },
})

/** Throws 409 `conflict` where the slug is taken, and 422 at the limit. */
export async function create(tx: Tx, caller: Caller, given: NewCategory): Promise<CategoryRow> {
  await rowForUpdate(tx, projects, caller.project_id)
  await requireRoom(tx, caller.project_id)
  const { name, slug = slugFrom(name) } = given
  if (slug === "") throw invalid("slug", "required", NO_SLUG)
  return category.insert(tx, caller, { ...DEFAULTS, ...given, ...channelsOf(given), slug })
}

/** What the change does not name stays. */
export const change = (tx: Tx, caller: Caller, before: CategoryRow, changes: CategoryChanges) =>
  category.update(tx, caller, before, { ...changes, ...channelsOf(changes) })

/** Each channel once. */
const channelsOf = ({ channels }: CategoryChanges) =>
  channels && { channels: [...new Set(channels)] }

const DEFAULTS = {
  description: null,
  critical: false,
  default: "on" as const,
  visibility: "public" as const,
  channels: [...AUDIENCE_CHANNELS],
}

const NO_SLUG = "The name has no letter from a to z and no digit to make a slug of. Give a slug."

async function requireRoom(tx: Tx, project_id: string) {
  const used = await countRows(tx, categories, eq(categories.project_id, project_id))
  if (used < MOST_CATEGORIES) return
  const text = `A project has at most ${MOST_CATEGORIES} categories. Delete one first.`
  throw invalid("name", "too_many", text)
}

const NAME_CHARACTERS = 100
const DESCRIPTION_CHARACTERS = 500

const CRITICAL = "Whether subscribers cannot end it, and quiet hours do not delay it."
const DEFAULT = "What holds for subscribers without a choice: `on` or `off`."
const VISIBILITY = "Whether the preference page shows it: `public` or `private`."
const CHANNELS = "The channels that it may use at all."

export const Category = t.Object(
  {
    id: id(),
    slug: text("newsletter", "It never changes."),
    name: text("Newsletter"),
    description: maybe(text("News of the month.")),
    critical: flag(false, CRITICAL),
    default: word(["on", "off"], DEFAULT),
    visibility: word(["public", "private"], VISIBILITY),
    channels: t.Array(word(AUDIENCE_CHANNELS), {
      examples: [[...AUDIENCE_CHANNELS]],
      description: CHANNELS,
    }),
    created_at: time(),
    updated_at: time(),
  },
  { title: "Category" },
)

const fields = {
  description: t.Optional(orNull(nameText(DESCRIPTION_CHARACTERS))),
  critical: t.Optional(t.Boolean({ description: CRITICAL })),
  default: t.Optional(oneOf("on", "off")),
  visibility: t.Optional(oneOf("public", "private")),
  channels: t.Optional(
    t.Array(oneOf(...AUDIENCE_CHANNELS), {
      minItems: 1,
      maxItems: AUDIENCE_CHANNELS.length,
      description: `${CHANNELS} Default: all four.`,
    }),
  ),
}

export const NewCategoryBody = t.Object({
  name: nameText(NAME_CHARACTERS),
  slug: t.Optional(
    t.String({
      pattern: CATEGORY_SLUG,
      description:
        "1 to 64 lower-case letters, digits, hyphens and underscores. Default: made from the name.",
    }),
  ),
  ...fields,
})

export const CategoryPatch = t.Object({ name: t.Optional(nameText(NAME_CHARACTERS)), ...fields })

export type NewCategory = Static<typeof NewCategoryBody>

type CategoryChanges = Static<typeof CategoryPatch>
