import type { Components } from "../../src/client/components"
import type { Client } from "../lib/client"
import { exits, Failure } from "../lib/errors"
import { isWholeId } from "../lib/id-kinds"
import { listUpTo } from "../lib/paging"
import { deletes, type PlainFlags, row } from "../lib/resource"
import { ago, type Columns, wide } from "../lib/table"
import { cleanLine } from "../lib/terminal"

type Category = Components["Category"]

const MOST_CATEGORIES = 1000

/** The id of a category, by its id or its slug. Throws with exit 3. */
async function categoryId(client: Client, named: string): Promise<string> {
  if (isWholeId(named)) return named
  const { rows } = await listUpTo(client, "GET /v1/subscribers/categories", MOST_CATEGORIES)
  const found = rows.find(({ slug }) => slug === named)
  if (found) return found.id
  const hint = "`belfry categories list` shows the slugs"
  const message = `There is no category ${cleanLine(named)}.`
  throw new Failure(exits.not_found, "not_found", message, { hint })
}

const columns: Columns<Category> = {
  SLUG: "slug",
  NAME: wide(({ name }) => name),
  DEFAULT: ({ default: held, critical }) => (critical ? "critical" : held),
  SHOWN: "visibility",
  CHANNELS: wide(({ channels }) => channels.join(" ")),
  AGE: ago(({ created_at }) => created_at),
}

const FLAGS: PlainFlags = {
  description: "description for subscribers; none removes it",
  default: "what holds for subscribers without a choice: on or off",
  visibility: "whether the preference page shows it: public or private",
  channels: "channel that it may use: email, push, sms or in_app; may be repeated",
}

export const categoryRows = [
  row("list", "GET /v1/subscribers/categories", { columns }),
  row("create", "POST /v1/subscribers/categories", {
    about: "create a category; sends may then name only categories that exist",
    example: ["--name Newsletter", "--name 'Security alerts' --critical on --channels email"],
    flags: {
      ...FLAGS,
      name: "name for subscribers",
      slug: "name in sends and preferences (default: made from the name)",
    },
    done: ({ slug, id }) => `created the category ${slug}   ${id}`,
  }),
  row("get <category>", "GET /v1/subscribers/categories/{category_id}", {
    about: "show one category, by its slug or id",
    word: "newsletter",
    id: categoryId,
  }),
  row("update <category>", "PATCH /v1/subscribers/categories/{category_id}", {
    about: "change a category; its slug stays",
    word: "newsletter",
    example: "--default off",
    flags: { ...FLAGS, name: "new name" },
    id: categoryId,
  }),
  row("rm <category>", "DELETE /v1/subscribers/categories/{category_id}", {
    about: "delete a category that no waiting message names",
    word: "newsletter",
    id: categoryId,
    ...deletes((category) => `Sends with the category ${category} will be refused.`),
  }),
]
