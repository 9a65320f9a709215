export { faultOf } from "../core/faults"

/** The five-character SQLSTATE: a failing query arrives wrapped by drizzle, a failing COMMIT bare. */
export function sqlState(error: unknown): string | undefined {
  const { errno, cause } = error as { errno?: string; cause?: { errno?: string } }
  return cause?.errno ?? errno
}
