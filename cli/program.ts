import { Command, CommanderError, Help, type Option } from "commander"
import * as accounts from "./commands/accounts"
import * as admin from "./commands/admin"
import * as backup from "./commands/backup"
import * as completion from "./commands/completion"
import * as config from "./commands/config"
import * as db from "./commands/db"
import * as deliveries from "./commands/deliveries"
import * as domains from "./commands/domains"
import * as emails from "./commands/emails"
import * as events from "./commands/events"
import * as inbound from "./commands/inbound"
import * as jobs from "./commands/jobs"
import * as keys from "./commands/keys"
import * as listen from "./commands/listen"
import * as local from "./commands/local"
import * as login from "./commands/login"
import * as logs from "./commands/logs"
import * as mailbox from "./commands/mailbox"
import * as me from "./commands/me"
import * as profiles from "./commands/profiles"
import * as providers from "./commands/providers"
import * as queue from "./commands/queue"
import * as restore from "./commands/restore"
import * as setup from "./commands/setup"
import * as smtp from "./commands/smtp"
import * as subscriberConsents from "./commands/subscriber-consents"
import * as subscribers from "./commands/subscribers"
import * as suppressions from "./commands/suppressions"
import * as templateFiles from "./commands/template-files"
import * as topics from "./commands/topics"
import * as tui from "./commands/tui"
import * as usage from "./commands/usage"
import * as webhooks from "./commands/webhooks"
import { normalized, readWords } from "./lib/arguments"
import { DryRun } from "./lib/client"
import { type Context, openContext } from "./lib/context"
import { environment, version } from "./lib/environment"
import { errorBody, errorText, exits, Failure } from "./lib/errors"
import { addGlobalFlags, type GlobalFlags, globalFlags, quoted, typedAs } from "./lib/flags"
import { watchInterrupts, watchReaders } from "./lib/interrupt"
import { write } from "./lib/output"
import { addResources } from "./lib/resource"
import { painter, wantsColour } from "./lib/terminal"
import { resources } from "./resources"

/** Runs one command line and ends the process with its exit code. */
export async function run(words: string[]): Promise<never> {
  watchInterrupts()
  watchReaders()
  let printed = Promise.resolve() // what --help prints, which must be out before the process ends
  const program = createProgram(words, (text) => {
    printed = printed.then(() => write(process.stdout, text))
  })
  const state: RunState = { flags: { color: true }, command: undefined }
  program.hook("preAction", (_, command) => {
    state.flags = globalFlags(command)
    state.command = command
  })
  try {
    await parse(program, words)
    await printed
    process.exit(process.exitCode ?? exits.done)
  } catch (error) {
    process.exit(await ended(error, state))
  }
}

async function parse(program: Command, words: string[]): Promise<void> {
  const given = helpWords(words, program)
  try {
    await program.parseAsync(normalized(given, program), { from: "user" })
  } catch (error) {
    const is_asked_help = error instanceof CommanderError && isHelp(error) && error.exitCode === 0
    if (!is_asked_help) throw error
  }
}

/** `help emails send` and `emails help send` are `emails send --help`. */
function helpWords(words: string[], program: Command): string[] {
  const at = words.indexOf("help")
  const before = at < 0 ? undefined : readWords(words.slice(0, at), program)
  const asked = before?.positional.length === 0 && before.command.commands.length > 0
  const named = asked ? words.toSpliced(at, 1) : words
  if (!asked && !words.some((word) => word === "--help" || word === "-h")) return words
  const { command, positional } = readWords(named, program)
  // Without --help commander says which command is unknown, and which one is nearest.
  if (positional.length > 0 && command.commands.length > 0) {
    return named.filter((word) => word !== "--help" && word !== "-h")
  }
  return asked ? [...named, "--help"] : words
}

/**
 * The tree of commands; each loads its action when it runs. Given the words of a command line, it is
 * complete only below the root's commands that stand in the line: most of the start would go into the rest.
 */
export function createProgram(
  words?: readonly string[],
  writeOut = (text: string) => void process.stdout.write(text),
) {
  const isNeeded = (name: string) => words?.includes(name) ?? true
  const program = new Command("belfry")
    .description("Email, push, SMS and inbox behind one API, from one executable that you own.")
    .exitOverride()
    .configureOutput({ writeOut, outputError: () => {} }) // printed by `ended`, as the reader wants it
    .configureHelp({ optionTerm: (option) => term(option), subcommandTerm, formatHelp })
    .addHelpCommand(helpCommand())
    .version(version, "-V, --version", "print the version")
  const mail = [
    emails,
    inbound,
    subscribers,
    subscriberConsents,
    suppressions,
    topics,
    domains,
    providers,
    mailbox,
    smtp,
    events,
    webhooks,
    deliveries,
    jobs,
    keys,
    logs,
    templateFiles,
  ]
  const people = [login, setup, me, accounts, usage, admin, queue]
  const box = [local, backup, restore, db, tui]
  const nouns = [...box, ...mail, ...people, profiles, config, listen, completion]
  addResources(program, resources, isNeeded)
  for (const noun of nouns) noun.define(program)
  for (const noun of program.commands) arrange(noun)
  group(program)
  addGlobalFlags(program, isNeeded)
  return program.addHelpText(
    "after",
    `
Exit codes:
${exitLines()}

Example:
  $ belfry up
  $ belfry emails send --to ann@mailbox.test --from me@mailbox.test --subject Hi --text hello`,
  )
}

const exit_words = [
  ["0 done", "1 failed", "2 usage"],
  ["3 not found", "4 not authorized", "5 conflict"],
  ["6 rate or quota", "7 validation", "8 partly failed"],
  ["66 no such file", "69 not reachable", "74 storage"],
  ["75 try again later", "130 interrupted"],
]

const exitLines = (): string =>
  exit_words.map((row) => `  ${row.map((word) => word.padEnd(20)).join("")}`.trimEnd()).join("\n")

/** The root's help, in the order in which people meet the commands. */
const groups: Record<string, string> = {
  "Run a server:": "up serve init migrate backup restore config status smoke upgrade admin db",
  "Sign in:": "login logout whoami setup signup password me profiles",
  "Send and read mail:":
    "emails scheduled templates categories topics inbound inbox subscribers suppressions domains providers mailbox smtp",
  "Follow what happens:": "tui events webhooks listen trigger logs",
  "Keys, people and projects:": "keys projects accounts members invitations settings",
  "Work and use:": "queue jobs usage reputation audit",
  "Help:": "help completion routes version",
}

function group(program: Command): void {
  const order = Object.entries(groups).flatMap(([heading, names]) =>
    names.split(" ").map((name) => ({ heading, name })),
  )
  for (const command of program.commands) {
    const place = order.find(({ name }) => name === command.name())
    if (place) command.helpGroup(place.heading)
  }
  const rank = (command: Command) => order.findIndex(({ name }) => name === command.name())
  ;(program.commands as Command[]).sort((one, other) => rank(one) - rank(other))
}

const first_verbs = "send batch create add set enroll list show get update delete".split(" ")

/** The usual verbs stand first in the help of every noun. Help behind a noun is for `helpWords`. */
function arrange(command: Command): void {
  command.helpCommand(false)
  const rank = (child: Command) => first_verbs.indexOf(child.name()) + 1 || first_verbs.length + 1
  ;(command.commands as Command[]).sort((one, other) => rank(one) - rank(other))
  for (const child of command.commands) arrange(child)
}

const helpCommand = () =>
  new Command("help")
    .argument("[command...]")
    .description("print the help of a command")
    .helpGroup("Help:")

/** `login [url]`: every command has options, so that need not be state. */
const subcommandTerm = (command: Command): string =>
  [
    command.name(),
    ...command.registeredArguments.map((argument) => {
      const name = argument.name() + (argument.variadic ? "..." : "")
      return argument.required ? `<${name}>` : `[${name}]`
    }),
  ].join(" ")

/** As commander writes it, with the commands before the options. */
function formatHelp(command: Command, helper: Help): string {
  const text = Help.prototype.formatHelp.call(helper, command, helper)
  const parts = text.trimEnd().split("\n\n")
  const isOptions = (part: string) => /^(Options|Global options):/.test(part)
  const [first = "", ...rest] = parts
  const is_group = command.commands.length > 0
  const late = is_group ? rest.filter(isOptions) : []
  return `${[first, ...rest.filter((part) => !late.includes(part)), ...late].join("\n\n")}\n`
}

const term = (option: Option) => option.flags.replace("--json [fields]", "--json[=fields]")

/** Tells what went wrong, and gives the exit code for it. */
async function ended(error: unknown, { flags, command }: RunState): Promise<number> {
  if (error instanceof DryRun) {
    // A dry run has no result, so --json fields and --quiet do not apply.
    const { output } = openContext({ ...flags, dryRun: true, quiet: false, json: "" })
    await output.record(error.request, () => "")
    return exits.done
  }
  if (error instanceof CommanderError && isHelp(error)) {
    return exits.usage
  }
  const failure = await advised(asFailure(error), { flags, command })
  const is_terminal = process.stderr.isTTY === true
  const paint = painter(wantsColour(environment, is_terminal, flags.color === false))
  const is_text = is_terminal && !failure.is_for_log
  const text = is_text ? errorText(failure, paint, typedAs(command)) : errorBody(failure)
  await write(process.stderr, `${text}\n`)
  if (!flags.verbose || !(error instanceof Error)) return failure.exit
  const stack = is_text ? error.stack : JSON.stringify({ stack: error.stack })
  await write(process.stderr, `${stack}\n`)
  return failure.exit
}

/** What came before an error: the flags, and the command that ran. */
interface RunState {
  flags: GlobalFlags
  command: Command | undefined
}

/** With the next step that only the server knows. */
async function advised(failure: Failure, { flags, command }: RunState): Promise<Failure> {
  const may_help = failure.exit === exits.unauthorized && command?.name() !== "setup"
  if (!command || !may_help || flags.dryRun) return failure
  return withSetup(failure, openContext(flags))
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

const PATIENCE_MILLISECONDS = 2000

/**
 * On a server without an owner no sign-in is possible and no role helps. After every such refusal
 * the next step is to set it up. Any other failure stays as it is.
 */
async function withSetup(failure: Failure, context: Context): Promise<Failure> {
  if (failure.exit !== exits.unauthorized) return failure
  const { url } = context.connection()
  try {
    const client = context.anonymous(url, PATIENCE_MILLISECONDS)
    const { data } = await client.call("GET /v1/setup")
    if (!data.required) return failure
  } catch {
    return failure // what cannot be asked changes nothing
  }
  const { exit, code, message, request_id, status } = failure
  const next = `belfry setup ${quoted(url)}`
  return new Failure(exit, code, message, {
    details: { ...failure.details, next },
    hint: `this server has no owner yet. Become its owner with \`${next}\``,
    ...(request_id && { request_id }),
    ...(status && { status }),
  })
}
