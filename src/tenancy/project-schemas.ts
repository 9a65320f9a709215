import { Type as t } from "@sinclair/typebox"
import { flag, id, text, time, word } from "../lib/record-fields"

export const Project = t.Object(
  {
    id: id(),
    account_id: id(),
    name: text("Website"),
    slug: text("website"),
    status: word(["active", "deleting"]),
    sandbox: flag(false, "Whether all mail of the project goes to the embedded mailbox."),
    created_at: time(),
    updated_at: time(),
  },
  { title: "Project" },
)
