import type { Action } from "../lib/context"
import { formatNamed, mappingOf, rowsIn } from "../lib/file-columns"
import { enterAtOnce, type ImportOptions, importLines } from "../lib/file-import"
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
      yield suppressionLine(row, reason, note)
  }
  return importLines(context, {
    ...{ path, options, noun: "suppressions", name: "address", settings, lines },
    counts: ["added", "existing", "left_out"],
    async enter(all, key, counts) {
      const lines = all.filter((one) => !(one as SuppressionLine).left_out)
      counts.left_out = (counts.left_out ?? 0) + all.length - lines.length
      const emails = lines.map(({ name, fields }) => ({
        ...(/^\+\d+$/.test(name) ? { phone: name } : { email: name }),
        ...fields,
      }))
      const place = /^emails\.\d+(\.\w+)?: /g
      const bulk = { route: "POST /v1/suppressions/bulk", body: { emails }, place } as const
      return enterAtOnce(context, bulk, lines, key, counts)
    },
    done: ({ added, existing, left_out }) => {
      const others = left_out ? `, ${left_out} left out: the file says that they get mail` : ""
      return `${added} added, ${existing} suppressed before${others}`
    },
  })
}
