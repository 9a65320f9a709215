import { createInterface } from "node:readline/promises"
import type { Context } from "./context"
import { exits, Failure, usage } from "./errors"
import { write } from "./output"
import { cleanLine } from "./terminal"

const INTERRUPT = "\u0003"
const END = "\u0004"
const ERASE = ["\u007f", "\b"]

/** One line from a person; off a terminal `hint` says how to give it otherwise. */
export async function ask(context: Context, question: string, hint: string): Promise<string> {
  requirePerson(context, question, hint)
  return await answered(`${cleanLine(question)}: `)
}

async function answered(question: string): Promise<string> {
  const prompt = createInterface({ input: process.stdin, output: process.stderr })
  prompt.once("SIGINT", () => process.exit(exits.interrupted))
  const text = await prompt.question(question)
  prompt.close()
  return text.trim()
}

/** The address that was given with --email, or by a person. */
export const emailOf = async (context: Context, { email }: { email?: string | undefined }) =>
  email ?? (await ask(context, "Email", "give it with --email"))

/** As `ask`, but nothing is shown of what is typed. */
export async function askHidden(context: Context, question: string, hint: string) {
  requirePerson(context, question, hint)
  await write(process.stderr, `${cleanLine(question)}: `)
  const { stdin } = process
  stdin.setRawMode(true)
  stdin.resume()
  try {
    return await typed(stdin)
  } finally {
    stdin.setRawMode(false)
    stdin.pause()
    await write(process.stderr, "\n")
  }
}

function typed(stdin: NodeJS.ReadStream): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  let text = ""
  const hear = (bytes: Buffer) => {
    for (const character of bytes.toString("utf8")) {
      if (character === INTERRUPT) process.exit(exits.interrupted)
      if (character === "\r" || character === "\n" || character === END) {
        stdin.off("data", hear)
        return resolve(text)
      }
      text = ERASE.includes(character) ? [...text].slice(0, -1).join("") : text + character
    }
  }
  stdin.on("data", hear)
  return promise
}

/** A password: the first line of stdin with `--password-stdin`, else typed, twice if it is new. */
export async function password(
  context: Context,
  { passwordStdin, is_new }: { passwordStdin?: boolean | undefined; is_new?: boolean },
): Promise<string> {
  if (passwordStdin) return (await Bun.stdin.text()).split(/\r?\n/)[0] ?? ""
  const hint = "give it with --password-stdin"
  const first = await askHidden(context, is_new ? "New password" : "Password", hint)
  if (!is_new) return first
  const second = await askHidden(context, "New password again", hint)
  if (first !== second) throw usage("the two passwords are not the same")
  return first
}

/** The present password and a new one: two lines of stdin, or typed. */
export async function twoPasswords(
  context: Context,
  { passwordStdin }: { passwordStdin?: boolean | undefined },
): Promise<[present: string, wanted: string]> {
  if (!passwordStdin) {
    const hint = "give both with --password-stdin"
    const present = await askHidden(context, "Old password", hint)
    return [present, await password(context, { is_new: true })]
  }
  const [present, wanted] = (await Bun.stdin.text()).split(/\r?\n/)
  if (!present || !wanted)
    throw usage("stdin must have two lines: the old password, then the new one")
  return [present, wanted]
}

function requirePerson({ terminal }: Context, question: string, hint: string) {
  if (terminal.in && terminal.err) return
  throw usage(`${question}: there is no terminal for this question`, hint)
}

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

  const question = `${cleanLine(what)}\nType ${cleanLine(word)} to go on: `
  const typed = await answered(question).catch(() => {
    process.stderr.write("\n")
    return "" // Ctrl-D
  })
  if (typed !== word) throw unconfirmed("Not confirmed: nothing was changed.")
}

const unconfirmed = (message: string) =>
  new Failure(exits.usage, "unconfirmed", message, { hint: "add --yes to confirm" })
