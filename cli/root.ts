import { Command, Help, type Option } from "commander"
import { version } from "./lib/environment"
import { addGlobalFlags } from "./lib/flags"

/** The command `belfry` without commands. What help prints goes to `writeOut`. */
export const createRoot = (writeOut: (text: string) => void): Command =>
  new Command("belfry")
    .description("Email, push, SMS and inbox behind one API, from one executable that you own.")
    .exitOverride()
    .configureOutput({ writeOut, outputError: () => {} }) // printed by `ended`, as the reader wants it
    .configureHelp({ optionTerm: (option) => term(option), subcommandTerm, formatHelp })
    .addHelpCommand(helpCommand())
    .version(version, "-V, --version", "print the version")

/** What all commands have in common: their order, the global flags, the exit codes. */
export function finishRoot(program: Command, isNeeded: (name: string) => boolean): Command {
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
  "Run a server:": "up open serve init migrate backup restore config status smoke upgrade admin db",
  "Sign in:": "login logout whoami setup signup password me profiles",
  "Send and read messages:":
    "emails push sms devices scheduled templates ai categories topics inbound inbox subscribers suppressions domains providers mailbox smtp",
  "Follow what happens:": "tui events webhooks listen trigger logs",
  "Keys, people and projects:": "keys projects accounts members invitations settings",
  "End users:": "applications users orgs",
  "Work and use:": "queue jobs usage reputation audit mcp",
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
