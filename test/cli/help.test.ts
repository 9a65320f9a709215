import { expect, test } from "bun:test"
import type { Command } from "commander"
import { programFor } from "../../cli/command-line"
import { ID, OTHER_ID } from "../../cli/lib/resource"
import { createProgram } from "../../cli/program"
import manifest from "../../package.json" with { type: "json" }
import { belfry } from "./lines"

function leaves(command: Command): Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leaves)
}

/** `belfry admin plan set` */
const pathOf = (command: Command): string =>
  command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name()

/** What --help prints, also that which is added behind it. */
function helpOf(command: Command): string {
  let text = ""
  command.configureOutput({ writeOut: (part) => (text += part) })
  command.outputHelp()
  return text
}

test("the help of every command has an example of it", () => {
  const without = leaves(createProgram()).filter((command) => {
    return !helpOf(command).includes(`$ ${pathOf(command)}`)
  })
  expect(without.map((command) => command.name())).toEqual([])
})

/** Its own flags, and those of the groups that it is in. */
const flagsOf = (command: Command): (string | undefined)[] => [
  ...command.options.map(({ long }) => long),
  ...(command.parent ? flagsOf(command.parent) : []),
]

test("no example has a flag that its command refuses", () => {
  const wrong = leaves(createProgram()).flatMap((command) => {
    const lines = helpOf(command)
      .split(`$ ${pathOf(command)} `)
      .slice(1)
    const given = lines.flatMap((line) => line.split(/[|\n]/)[0]?.match(/ --[a-z-]+/g) ?? [])
    const known = ["--help", ...flagsOf(command)]
    return given.filter((one) => !known.includes(one.trim())).map((one) => pathOf(command) + one)
  })
  expect(wrong).toEqual([])
})

test.each([
  "emails batch - < messages.ndjson",
  "suppressions import - < addresses.txt",
  `suppressions rm ${ID} --yes`,
  "subscribers import people.ndjson --dry-run",
  `inbound attachments ${ID} 0 --save-as invoice.pdf`,
  `mailbox attachments ${ID} 0 --save-as receipt.pdf`,
  `webhooks deliveries ${ID} ${OTHER_ID}`,
  `webhooks retry ${ID} ${OTHER_ID}`,
  `topics publishes product-news ${ID} --wait`,
])("the help has an example of each form of arguments: %s", (line) => {
  const texts = leaves(createProgram()).map(helpOf)
  expect(texts.filter((text) => text.includes(`  $ belfry ${line}\n`))).toHaveLength(1)
})

test("no flag repeats what an argument says, and no help says `none` where nothing is there to be removed", () => {
  const commands = leaves(createProgram())
  const optionOf = (path: string, name: string) =>
    commands.find((command) => pathOf(command) === path)?.options.find(({ long }) => long === name)
  expect(optionOf("belfry subscribers upsert", "--external-id")).toBeUndefined()
  expect(optionOf("belfry templates edit", "--layout")?.description).toContain("none removes it")
  expect(optionOf("belfry templates render-draft", "--layout")?.description).not.toContain("none")
})

const everyCommand = (command: Command): Command[] => [
  command,
  ...command.commands.flatMap(everyCommand),
]

test("the help of every noun begins with the usual verbs, in one order", () => {
  const usual = ["send", "create", "add", "set", "list", "get", "update", "delete"]
  for (const noun of createProgram().commands.flatMap(everyCommand)) {
    const names = noun.commands.map((child) => child.name())
    const verbs = names.filter((name) => usual.includes(name))
    expect([pathOf(noun), verbs]).toEqual([
      pathOf(noun),
      usual.filter((name) => names.includes(name)),
    ])
  }
  const emails = createProgram().commands.find((child) => child.name() === "emails")
  const names = emails?.commands.map((child) => child.name())
  expect(names?.slice(0, 4)).toEqual(["send", "batch", "list", "get"])
})

test("a tree for the words of one line has the root and the commands of that line as the whole one has", () => {
  const whole = createProgram()
  expect(helpOf(createProgram([]))).toBe(helpOf(whole))
  for (const noun of whole.commands) {
    const line = ["--profile", "ci", noun.name(), "list"]
    const found = createProgram(line).commands.find((child) => child.name() === noun.name())
    const texts = (command: Command | undefined) => command && everyCommand(command).map(helpOf)
    expect(texts(found)).toEqual(texts(noun))
  }
})

test("the help of a list of records says in which order they come", () => {
  const lists = leaves(createProgram()).filter(
    (command) =>
      /^(list|attempts)$/.test(command.name()) &&
      !/^belfry (profiles|queue|applications (gaming|oauth))/.test(pathOf(command)),
  )
  const unsaid = lists.filter((command) => !/newest|latest|oldest/.test(command.description()))
  expect([lists.length > 10, unsaid.map(pathOf)]).toEqual([true, []])
})

test("the version is that of the package, plain for --version and as JSON in a pipe", async () => {
  expect((await belfry(["--version"])).out).toBe(`${manifest.version}\n`)
  expect(JSON.parse((await belfry(["version"])).out).version).toBe(manifest.version)
})

test("the line of a server has a small tree, whose commands are as those of the whole one", async () => {
  const whole = createProgram()
  for (const line of ["serve", "up --port 0", "--json serve", "--config up up"]) {
    const small = await programFor(line.split(" "), () => {})
    expect(small.commands.map((child) => child.name())).not.toContain("emails")
    for (const name of ["serve", "up"]) {
      const named = (tree: Command) => tree.commands.find((child) => child.name() === name)
      expect(helpOf(named(small) as Command)).toBe(helpOf(named(whole) as Command))
    }
  }
})

test("a line with the name of a server elsewhere, or with --help, has the whole tree", async () => {
  for (const line of ["help serve", "--help serve", "emails serve", "--config serve emails"]) {
    const tree = await programFor(line.split(" "), () => {})
    expect(tree.commands.map((child) => child.name())).toContain("emails")
  }
})

const groups = createProgram().commands.filter(({ commands }) => commands.length > 0)

test.each(groups.map((group) => [group.name(), group] as const))(
  "the help of the group %s has an example too",
  (name, group) => expect(helpOf(group)).toContain(`$ belfry ${name} `),
)

test("help finds a command at any depth", async () => {
  const { exit, out } = await belfry(["help", "emails", "send"])
  expect([exit, out]).toEqual([0, (await belfry(["emails", "send", "--help"])).out])
  expect((await belfry(["help"])).out).toBe((await belfry(["--help"])).out)
})

test("the root's help has every command in one of its groups, and commands before flags", () => {
  const text = helpOf(createProgram())
  expect(text).not.toContain("\nCommands:")
  for (const { name } of createProgram().commands.map((one) => ({ name: one.name() }))) {
    expect(text.match(new RegExp(`^  ${name}( |$)`, "gm"))).toHaveLength(1)
  }
  expect(text.indexOf("\nRun a server:")).toBeLessThan(text.indexOf("\nSend and read messages:"))
  expect(text.indexOf("\nHelp:")).toBeLessThan(text.indexOf("\nGlobal options:"))
})

test.each([
  [["help", "emials"], "Did you mean emails?"],
  [["help", "emails", "snd"], "Did you mean send?"],
  [["emials", "--help"], "Did you mean emails?"],
  [["emails", "help", "snd"], "Did you mean send?"],
  [["help", "xyzzy"], "unknown command 'xyzzy'"],
])("%p is an error that names the nearest", async (words, told) => {
  const { exit, out, err } = await belfry(words)
  expect([exit, out]).toEqual([2, ""])
  expect(JSON.parse(err).error.message).toContain(told)
})

test("help after a noun is the help of the command behind it", async () => {
  const send = (await belfry(["emails", "send", "--help"])).out
  expect((await belfry(["emails", "help", "send"])).out).toBe(send)
  expect((await belfry(["emails", "help"])).out).toBe((await belfry(["emails", "--help"])).out)
})

test("what a command takes stands before what every command takes", () => {
  const late = leaves(createProgram())
    .map(helpOf)
    .filter((text) => text.indexOf("\nOptions:") > text.indexOf("\nGlobal options:"))
  expect(late).toEqual([])
})

test("every example of emails send says who sends: it would be refused as printed", () => {
  const lines = leaves(createProgram()).flatMap((command) => helpOf(command).split("\n"))
  const examples = lines.filter((line) => line.includes("$ belfry emails send"))
  expect(examples.length).toBeGreaterThan(1)
  expect(examples.filter((line) => !line.includes("--from"))).toEqual([])
})

test("help is asked for with 0 and given unasked with 2", async () => {
  const asked = await belfry(["--help"])
  expect([asked.exit, asked.err]).toEqual([0, ""])
  const unasked = await belfry(["emails"])
  expect([unasked.exit, unasked.out]).toEqual([2, ""])
  expect(unasked.err).toContain("Usage: belfry emails")
})

/**
 * Switches of one command that give a value in another: `content --html` prints what `send --html` gave.
 * The reason of a suppression is one of a few words, that of a freeze is a text. Usage has months only.
 */
const twofold = [
  ...["--html", "--text", "--receiving", "--limit", "--reason", "--period"],
  ...["--body", "--action", "--priority"],
]

test("a flag takes the same kind of value in every command, and one idea has one flag", () => {
  const forms = new Map<string, Set<string>>()
  for (const command of leaves(createProgram())) {
    for (const { long, flags } of command.options) {
      const seen = forms.get(long ?? flags) ?? new Set()
      forms.set(long ?? flags, seen.add(flags))
    }
  }
  const several = [...forms].filter(([name, seen]) => seen.size > 1 && !twofold.includes(name))
  expect(several.map(([, seen]) => [...seen])).toEqual([])
  // An application has a type, so `--type` is its flag; events have none of these.
  const second_names = ["--types", "--events", "--before", "--start", "--end", "--from-time"]
  expect(second_names.filter((name) => forms.has(name))).toEqual([])
  expect([...(forms.get("--after") ?? [])]).toEqual(["--after <id>"])
  expect([...(forms.get("--since") ?? [])]).toEqual(["--since <when>"])
})

test("--since says the same wherever it stands alone, and so do --until and --after", () => {
  const said = (name: string) =>
    new Set(
      leaves(createProgram()).flatMap(({ options }) =>
        options
          .filter(({ long }) => long === name)
          .map(({ description }) => description.replace("with --all: ", "")),
      ),
    )
  expect(["--since", "--until", "--after"].map((name) => said(name).size)).toEqual([1, 1, 1])
})

test("one idea has one wording: shared flags say the same in every command", () => {
  const said = new Map<string, Set<string>>()
  for (const { options } of leaves(createProgram())) {
    for (const { flags, description } of options) {
      const text = description.replace(/^with --\w+: /, "")
      said.set(flags, (said.get(flags) ?? new Set()).add(text))
    }
  }
  const shared = ["--idempotency-key <key>", "--data-dir <dir>", "--set <key=value>"]
  const filled = ["--header <header>", "--metadata <pair>", "--period <YYYY-MM>", "--skip-verify"]
  for (const flags of [...shared, ...filled])
    expect([flags, said.get(flags)?.size]).toEqual([flags, 1])
  const rows = [...(said.get("--limit <number>") ?? [])]
  expect(rows.filter((text) => !text.startsWith("end after this number of "))).toHaveLength(1)
})

test("the line of every command begins with a verb, not with its object", () => {
  const every = (command: Command): Command[] => [command, ...command.commands.flatMap(every)]
  const lines = createProgram()
    .commands.flatMap(every)
    .map((one) => one.description())
  const noun = /^(?:the|a|an|your|one|every|what|how|where|who|all|it|its) /
  expect(lines.filter((line) => noun.test(line) || line === "")).toEqual([])
})
