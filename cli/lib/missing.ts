import type { Context } from "./context"
import { exits } from "./errors"
import { cleanLine } from "./terminal"

const MOST_NAMED = 20
const LONGEST_NAME = 255

/** Prints what was done, and to people what was not there; exit 3 where something was not. */
export async function recordMissing(
  { output, paint }: Context,
  result: { not_found: readonly string[] } & Record<string, unknown>,
  done: string,
  missing: (name: string) => string,
): Promise<number> {
  const { not_found } = result
  await output.record(result, () => {
    const cross = paint.red("✗")
    const named = not_found.slice(0, MOST_NAMED).map((name) => {
      return `${cross} ${missing(cleanLine(name).slice(0, LONGEST_NAME))}`
    })
    const more = not_found.length - named.length
    const rest = more > 0 ? [`${cross} and ${more} more`] : []
    return [`${paint.green("✓")} ${done}`, ...named, ...rest].join("\n")
  })
  return not_found.length > 0 ? exits.not_found : exits.done
}
