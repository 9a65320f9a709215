import { expect, test } from "bun:test"
import type { Command } from "commander"
import { createProgram } from "../../cli/program"
import manifest from "../../package.json" with { type: "json" }
import { belfry } from "./belfry"

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

test("the version is that of the package, plain for --version and as JSON in a pipe", async () => {
  expect((await belfry(["--version"])).out).toBe(`${manifest.version}\n`)
  expect(JSON.parse((await belfry(["version"])).out).version).toBe(manifest.version)
})

test("help is asked for with 0 and given unasked with 2", async () => {
  const asked = await belfry(["--help"])
  expect([asked.exit, asked.err]).toEqual([0, ""])
  const unasked = await belfry(["emails"])
  expect([unasked.exit, unasked.out]).toEqual([2, ""])
  expect(unasked.err).toContain("Usage: belfry emails")
})
