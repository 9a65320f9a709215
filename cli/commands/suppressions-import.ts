import type { Action, Context } from "../lib/context"
import { Failure } from "../lib/errors"
import { formatNamed, mappingOf, rowsIn } from "../lib/file-columns"
import {
  enterAtOnce,
  type ImportLine,
  type ImportOptions,
  importLines,
  patiently,
  type RefusedLine,
} from "../lib/file-import"
import { contactOf } from "../lib/input"
import { COLUMNS, type SuppressionLine, suppressionLine } from "./suppression-rows"

interface SuppressionOptions extends ImportOptions {
  map?: string[]
  reason?: string
  note?: string
}

/** Suppresses what a file names, in chunks. Exit 8 where some lines are refused. */
export const importFile: Action<SuppressionOptions> = async (context, options, path = "") => {
  const { reason, note, map = [] } = options
  const mapped = mappingOf(map, COLUMNS)
  const settings = { reason, note, mapped: [...mapped] }
  async function* lines(pieces: AsyncIterable<string>) {
    for await (const row of rowsIn(pieces, { ...COLUMNS, mapped }, formatNamed(path)))
      yield suppressionLine(row, options)
  }
  return importLines(context, {
    ...{ path, options, noun: "suppressions", name: "address", settings, lines },
    counts: ["added", "existing", "left_out"],
    async enter(all, key, counts) {
      const lines = all.filter((one) => !(one as SuppressionLine).left_out)
      counts.left_out = (counts.left_out ?? 0) + all.length - lines.length
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
    done: ({ added, existing, left_out }) => {
      const others = left_out
        ? `; ${left_out} left out, because the file says that they get mail`
        : ""
      return `${added} added, ${existing} suppressed before${others}`
    },
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
