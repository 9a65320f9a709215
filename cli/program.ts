import type { Command } from "commander"
import * as accounts from "./commands/accounts"
import * as admin from "./commands/admin"
import * as backup from "./commands/backup"
import * as completion from "./commands/completion"
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
import * as usage from "./commands/usage"
import * as webhooks from "./commands/webhooks"
import { plainNouns } from "./lib/plain-nouns"
import { addResources } from "./lib/resource"
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
  const people = [login, setup, accounts, usage, admin, queue]
  const box = [local, backup, restore, db]
  const nouns = [...box, ...mail, ...people, profiles, listen, completion]
  addResources(program, [...resources, ...plainNouns(resources)], isNeeded)
  for (const noun of nouns) noun.define(program)
  return finishRoot(program, isNeeded)
}
