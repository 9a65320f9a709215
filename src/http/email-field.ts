import type { Static, TSchema } from "@sinclair/typebox"
import { isMailbox, notOneAddress } from "../lib/address"
import type { Problems } from "./problems"
import { check } from "./validate"

/** Reads a body as its schema says, whose `email` must be one address. */
export const withEmail =
  <Schema extends TSchema>(schema: Schema) =>
  (body: unknown, problems: Problems): Static<Schema> => {
    check(schema, body, problems)
    const { email } = (body ?? {}) as { email?: unknown }
    if (typeof email === "string" && !isMailbox(email)) {
      problems.add("email", "invalid_email", notOneAddress(email))
    }
    return body as Static<Schema>
  }
