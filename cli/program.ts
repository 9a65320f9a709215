import { Command, CommanderError, type Option } from "commander"
import { DryRun } from "./client"
import * as accounts from "./commands/accounts"
import * as admin from "./commands/admin"
import * as config from "./commands/config"
import * as domains from "./commands/domains"
import * as emails from "./commands/emails"
import * as entrance from "./commands/entrance"
import * as events from "./commands/events"
import * as jobs from "./commands/jobs"
import * as keys from "./commands/keys"
import * as listen from "./commands/listen"
import * as local from "./commands/local"
import * as login from "./commands/login"
import * as mailbox from "./commands/mailbox"
import * as me from "./commands/me"
import * as members from "./commands/members"
import * as profiles from "./commands/profiles"
import * as projects from "./commands/projects"
import * as providers from "./commands/providers"
import * as queue from "./commands/queue"
import * as tui from "./commands/tui"
import * as usage from "./commands/usage"
import * as webhooks from "./commands/webhooks"
import { openContext } from "./context"
import { environment } from "./environment"
import { exits, Failure } from "./failure"
import { addGlobalFlags, type GlobalFlags, globalFlags, normalized } from "./global-flags"
import { watchInterrupts, watchReaders } from "./interrupt"
import { write } from "./output"
import { errorBody, errorText } from "./report"
import { painter, wantsColour } from "./terminal"
import { version } from "./version"

/** Runs one command line and ends the process with its exit code. */
export async function run(words: string[]): Promise<never> {
  watchInterrupts()
  watchReaders()
  let told = Promise.resolve() // what --help prints, which must be out before the process ends
  const program = createProgram((text) => {
    told = told.then(() => write(process.stdout, text))
  })
  let flags: GlobalFlags = { color: true }
  program.hook("preAction", (_, command) => {
    flags = globalFlags(command)
  })
  try {
    await parse(program, words)
    await told
    process.exit(process.exitCode ?? exits.done)
  } catch (error) {
    process.exit(await ended(error, flags))
  }
}

async function parse(program: Command, words: string[]): Promise<void> {
  // `belfry help emails send`, as far down as it goes
  const given = words[0] === "help" ? [...words.slice(1), "--help"] : words
  try {
    await program.parseAsync(normalized(given, program), { from: "user" })
  } catch (error) {
    const is_asked_help = error instanceof CommanderError && isHelp(error) && error.exitCode === 0
    if (!is_asked_help) throw error
  }
}

/** The whole tree. Commands load what they do when they run: `--help` stays quick. */
export function createProgram(writeOut = (text: string) => void process.stdout.write(text)) {
  const program = new Command("belfry")
    .description("Email, push, SMS and inbox behind one API, from one executable that you own.")
    .exitOverride()
    .configureOutput({ writeOut, outputError: () => {} }) // told by `ended`, as the reader wants it
    .configureHelp({ optionTerm: (option) => term(option) })
    .helpCommand("help [command...]", "print the help of a command")
    .version(version, "-V, --version", "print the version")
  const mail = [emails, domains, providers, mailbox, events, webhooks, jobs, keys]
  const people = [login, entrance, me, accounts, projects, members, usage, admin, queue]
  const nouns = [local, tui, ...mail, ...people, profiles, config, listen]
  for (const noun of nouns) noun.define(program)
  addGlobalFlags(program)
  return program.addHelpText(
    "after",
    `
Exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 not authorized, 5 conflict, 6 rate or quota,
  7 validation, 8 partly failed, 69 not reachable, 74 storage, 75 try again later, 130 interrupted

Example:
  $ belfry up
  $ belfry emails send --to ann@mailbox.test --from me@mailbox.test --subject Hi --text hello`,
  )
}

const term = (option: Option) => option.flags.replace("--json [fields]", "--json[=fields]")

/** Tells what went wrong, and gives the exit code for it. */
async function ended(error: unknown, flags: GlobalFlags): Promise<number> {
  if (error instanceof DryRun) {
    // Fields and ids belong to the result, which there is none of.
    const { output } = openContext({ ...flags, dryRun: true, quiet: false, json: "" })
    await output.record(error.request, () => "")
    return exits.done
  }
  if (error instanceof CommanderError && isHelp(error)) {
    return exits.usage
  }
  const failure = asFailure(error)
  const is_terminal = process.stderr.isTTY === true
  const paint = painter(wantsColour(environment, is_terminal, flags.color === false))
  const text = is_terminal ? errorText(failure, paint) : errorBody(failure)
  await write(process.stderr, `${text}\n`)
  if (flags.verbose && error instanceof Error) await write(process.stderr, `${error.stack}\n`)
  return failure.exit
}

const isHelp = ({ code }: CommanderError) =>
  ["commander.help", "commander.helpDisplayed", "commander.version"].includes(code)

function asFailure(error: unknown): Failure {
  if (error instanceof Failure) return error
  if (error instanceof CommanderError) {
    const message = error.message.replace(/^error: /, "").replaceAll("\n", " ")
    return new Failure(exits.usage, "usage", message, { hint: "see --help" })
  }
  const message = error instanceof Error ? error.message : String(error)
  return new Failure(exits.failed, "internal_error", message)
}
