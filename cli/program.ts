import type { Command } from "commander"
import * as admin from "./commands/admin"
import * as backup from "./commands/backup"
import * as completion from "./commands/completion"
import * as listen from "./commands/listen"
import * as local from "./commands/local"
import * as login from "./commands/login"
import * as profiles from "./commands/profiles"
import * as setup from "./commands/setup"
import * as smtp from "./commands/smtp"
import { addResources } from "./lib/add-resources"
import { plainNouns } from "./lib/plain-nouns"
import { resources } from "./resources"
import { createRoot, finishRoot } from "./root"

/**
 * The tree of commands; each loads its action when it runs. Given the words of a command line, it is
 * complete only below the root's commands that stand in the line: most of the start would go into the rest.
 */
export function createProgram(
  words?: readonly string[],
  writeOut: (text: string) => void = (text) => process.stdout.write(text),
): Command {
  const isNeeded = (name: string) => words?.includes(name) ?? true
  const program = createRoot(writeOut)
  const nouns = [local, backup, smtp, login, setup, admin, profiles, listen, completion]
  addResources(program, [...resources, ...plainNouns(resources)], isNeeded)
  for (const noun of nouns) noun.define(program)
  return finishRoot(program, isNeeded)
}
