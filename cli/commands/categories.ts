import type { Components } from "../../src/client/components"
import { idByName } from "../lib/paging"
import { deletes, type PlainFlags, row } from "../lib/resource"
import { ago, type Columns, wide } from "../lib/table"

type Category = Components["Category"]

const id = idByName({
  noun: "category",
  route: "GET /v1/subscribers/categories",
  field: "slug",
  hint: () => "`belfry categories list` shows the slugs",
})

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
    id,
  }),
  row("update <category>", "PATCH /v1/subscribers/categories/{category_id}", {
    about: "change a category; its slug stays",
    word: "newsletter",
    example: "--default off",
    flags: { ...FLAGS, name: "new name" },
    id,
  }),
  row("rm <category>", "DELETE /v1/subscribers/categories/{category_id}", {
    about: "delete a category that no waiting message names",
    word: "newsletter",
    id,
    ...deletes((category) => `Sends with the category ${category} will be refused.`),
  }),
]
