import { createInterface } from "node:readline/promises"
import type { Context } from "./context"
import { exits, Failure } from "./failure"
import { cleanLine } from "./terminal"

/**
 * Asks a person to type `word` before something is destroyed. Off a terminal `--yes` is the only
 * way: without it exit 2, and nothing has happened.
 */
export async function confirm(context: Context, what: string, word: string): Promise<void> {
  const { flags, terminal } = context
  if (flags.yes || flags.dryRun) return
  if (!terminal.in || !terminal.err) {
    throw unconfirmed(
      `Not confirmed: there is no terminal for the question. Nothing was changed. ${what}`,
    )
  }

  const prompt = createInterface({ input: process.stdin, output: process.stderr })
  prompt.once("SIGINT", () => process.exit(exits.interrupted))
  const question = `${cleanLine(what)}\nType ${cleanLine(word)} to go on: `
  const typed = await prompt.question(question).catch(() => {
    process.stderr.write("\n")
    return "" // Ctrl-D
  })
  prompt.close()
  if (typed.trim() !== word) throw unconfirmed("Not confirmed: nothing was changed.")
}

const unconfirmed = (message: string) =>
  new Failure(exits.usage, "unconfirmed", message, { hint: "add --yes to confirm" })
