import type { Action, Context } from "../lib/context"
import { type CsvColumns, fieldsIn } from "../lib/csv-columns"
import { Failure } from "../lib/errors"
import {
  enterAtOnce,
  type ImportLine,
  type ImportOptions,
  importLines,
  patiently,
  type RefusedLine,
} from "../lib/file-import"
import { contactOf, given } from "../lib/input"

interface SuppressionOptions extends ImportOptions {
  reason?: string
  note?: string
}

const COLUMNS: CsvColumns = {
  key: "address",
  fields: {
    address: ["email", "emailaddress", "recipient"],
    ...{ reason: [], note: [], expires_at: [], scope_type: [] },
  },
  together: true,
  headless: true,
}

/** Suppresses what a file names, in chunks. Exit 8 where some lines are refused. */
export const importFile: Action<SuppressionOptions> = async (context, options, path = "") => {
  const { reason, note } = options
  return importLines(context, {
    ...{ path, options, noun: "suppressions", name: "address", settings: { reason, note } },
    counts: ["added", "existing"],
    lines: (pieces) => linesOf(pieces, options),
    async enter(lines, key, counts) {
      const plain = lines.filter(isPlain)
      const emails = plain.map(({ name: email, fields }) => ({ email, ...fields }))
      const place = /^emails\.\d+(\.\w+)?: /g
      const bulk = { route: "POST /v1/suppressions/bulk", body: { emails }, place } as const
      const refused = await enterAtOnce(context, bulk, plain, key, counts)
      for (const line of lines.filter((one) => !isPlain(one))) {
        const outcome = await enterOne(context, line)
        if (typeof outcome !== "string") refused.push(outcome)
        else counts[outcome] = (counts[outcome] ?? 0) + 1
      }
      return refused
    },
    done: ({ added, existing }) => `${added} added, ${existing} suppressed before`,
  })
}

/** What a request for many can say: an email address without an end. */
const isPlain = ({ name, fields }: ImportLine) =>
  fields.expires_at === undefined && !/^\+\d+$/.test(name)

async function enterOne(
  context: Context,
  line: ImportLine,
): Promise<"added" | "existing" | RefusedLine> {
  const body = { ...contactOf(line.name), ...line.fields }
  const client = context.client()
  try {
    await patiently(context, () => client.call("POST /v1/suppressions", { body: body as never }))
    return "added"
  } catch (error) {
    if (!(error instanceof Failure) || error.status === undefined) throw error
    const { code, message, status } = error
    if (code === "conflict") return "existing"
    if (status === 422) return { ...line, code, message }
    throw error
  }
}

/** The lines of a CSV text with or without a head, or of a text with one address a line. */
async function* linesOf(pieces: AsyncIterable<string>, options: SuppressionOptions) {
  for await (const { line, length, values } of fieldsIn(pieces, COLUMNS)) {
    const { address: name = "", scope_type: scope = "project", ...own } = Object.fromEntries(values)
    const { reason, note } = options
    const fields = { ...given({ reason, note }), ...own }
    const refused =
      scope === "project" ? undefined : `A suppression of one ${scope} cannot be imported.`
    yield { line, name, length, fields, refused }
  }
}
