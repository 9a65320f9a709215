import { join } from "node:path"
import type { Command } from "commander"
import type { Components } from "../../src/client/components"
import type { Client } from "../lib/client"
import type { Action, Context } from "../lib/context"
import { exits, Failure } from "../lib/errors"
import { KnownTemplates, renderFiles } from "../lib/known-templates"
import { groupOf } from "../lib/resource"
import { examples, lazily, run } from "../lib/run"
import type { Columns } from "../lib/table"
import { unifiedDiff } from "../lib/template-diff"
import {
  filesOf,
  inOrder,
  inputOf,
  type LocalTemplate,
  localForm,
  onChange,
  readTemplates,
  writeTemplate,
} from "../lib/template-folder"
import { clockTime, millis, pause } from "../lib/time"

type Template = Components["Template"]

/** Templates as files in git: one folder each. */
export function define(program: Command): void {
  const templates = groupOf(program, "templates")
  const names = "names of templates (default: all)"
  templates
    .command("pull <folder> [names...]")
    .description("write templates into files, one folder each")
    .addHelpText("after", examples("templates pull templates", "templates pull templates receipt"))
    .action(run(pull))
  templates
    .command("push <folder>")
    .description("create and change templates from files; exit 8 if some are refused")
    .option("--only <name...>", names)
    .option("--draft", "do not publish the new versions")
    .option("--watch", "go on and push each change until Ctrl-C")
    .addHelpText("after", examples("templates push templates", "templates push templates --watch"))
    .action(run(push))
  templates
    .command("check <folder>")
    .description("render the files with the values of their example.json; exit 7 if one fails")
    .option("--only <name...>", names)
    .addHelpText("after", examples("templates check templates"))
    .action(run(check))
  templates
    .command("diff <folder>")
    .description("show how the files differ from the server; exit 1 if they do")
    .option("--only <name...>", names)
    .addHelpText("after", examples("templates diff templates"))
    .action(run(diff))
  templates
    .command("preview <folder>")
    .description("show the files in a browser on this machine; the page reloads with each change")
    .option("--port <number>", "port of the page (default: a free one)")
    .addHelpText("after", examples("templates preview templates"))
    .action(lazily(async () => (await import("./template-preview")).preview))
}

interface FileOptions {
  only?: string[]
  draft?: boolean
  watch?: boolean
}

interface PushedTemplate {
  [field: string]: unknown
  name: string
  action: "created" | "updated" | "unchanged" | "refused"
  version: number | null
  error: string | null
}

const columns: Columns<PushedTemplate> = {
  NAME: "name",
  ACTION: "action",
  VERSION: ({ version }) => (version === null ? "" : String(version)),
  ERROR: ({ error }) => error ?? "",
}

const push: Action<FileOptions> = async (context, options, folder = ""): Promise<number> => {
  const changed = new Set<string>()
  // Begun before the first push, so that no save is missed.
  using _ = options.watch ? onChange(folder, (name) => changed.add(name)) : undefined
  const done = await pushAll(context, wanted(readTemplates(folder), options.only), options)
  await context.output.list(done, columns)
  if (options.watch) return await pushChanges(context, folder, options, changed)
  return done.some(({ action }) => action === "refused") ? exits.partly_failed : exits.done
}

/** Those of the names; all without any. Throws with exit 3 for a name that has no folder. */
function wanted(all: LocalTemplate[], only: string[] | undefined): LocalTemplate[] {
  if (!only) return all
  const unknown = only.find((name) => !all.some((one) => one.name === name))
  if (unknown === undefined) return all.filter(({ name }) => only.includes(name))
  throw new Failure(exits.not_found, "template_not_found", `There is no folder of ${unknown}.`)
}

async function pushAll(context: Context, templates: LocalTemplate[], options: FileOptions) {
  const client = context.client()
  const known = await KnownTemplates.read(client)
  const done: PushedTemplate[] = []
  for (const [place, local] of inOrder(templates).entries()) {
    context.output.passing(`${place + 1} of ${templates.length}: ${local.name}`)
    done.push(await pushOne(client, known, local, options))
  }
  context.output.passing("")
  return done.sort((one, other) => (one.name < other.name ? -1 : 1))
}

async function pushOne(
  client: Client,
  known: KnownTemplates,
  local: LocalTemplate,
  { draft }: FileOptions,
): Promise<PushedTemplate> {
  const { name } = local
  try {
    const before = await known.whole(name)
    if (before && isSame(local, localForm(before, known.nameOf))) {
      return { name, action: "unchanged", version: before.version, error: null }
    }
    const body = { ...inputOf(local, known.idOf), ...(draft && { draft }) }
    const answer = before
      ? await client.send("PUT /v1/templates/{template_id}", {
          params: { template_id: before.id },
          body,
        })
      : await client.send("POST /v1/templates", { body })
    const { data } = answer as { data: Template }
    known.add(data.id, data.name)
    return { name, action: before ? "updated" : "created", version: data.version, error: null }
  } catch (error) {
    if (!(error instanceof Failure) || !REFUSALS.has(error.exit)) throw error
    return { name, action: "refused", version: null, error: error.message }
  }
}

/** What concerns one template; anything else ends the command. */
const REFUSALS = new Set<number>([exits.invalid, exits.conflict, exits.not_found])

const isSame = (one: LocalTemplate, other: LocalTemplate) =>
  Bun.deepEquals(filesOf(sorted(one)), filesOf(sorted(other)))

/** Tags have no order that counts. */
const sorted = (template: LocalTemplate) => ({ ...template, tags: template.tags.toSorted() })

/** Long enough for an editor to write all files of one save. */
const SETTLE_MILLISECONDS = 100

/** Pushes each template whose files change, until Ctrl-C. */
async function pushChanges(
  context: Context,
  folder: string,
  options: FileOptions,
  changed: Set<string>,
): Promise<never> {
  const { output, paint } = context
  await output.note(paint.dim(`watching ${folder}; Ctrl-C ends it`))
  while (true) {
    await pause(SETTLE_MILLISECONDS)
    if (changed.size === 0) continue
    const names = [...changed]
    changed.clear()
    await pushNamed(context, folder, names, options)
  }
}

/** A file that is half written, or wrong, is told; the next save mends it. */
async function pushNamed(context: Context, folder: string, names: string[], options: FileOptions) {
  const { output, paint } = context
  try {
    const all = readTemplates(folder).filter(({ name }) => names.includes(name))
    for (const one of await pushAll(context, wanted(all, undefined), options)) {
      const mark = one.action === "refused" ? paint.red("✗") : paint.green("✓")
      const line = `${mark} ${clockTime(new Date(millis()).toISOString())}  ${one.name} ${one.action}  ${one.error ?? ""}`
      await output.line(one, () => line.trimEnd())
    }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    await output.note(`${paint.red("✗")} ${error.message}`)
  }
}

interface PulledTemplate {
  [field: string]: unknown
  name: string
  action: "written" | "unchanged"
  folder: string
}

const pull: Action<object> = async (context, _, folder = "", ...rest) => {
  const only = rest.flat()
  const known = await KnownTemplates.read(context.client())
  for (const name of only) if (known.lookup(name) === undefined) throw absent(name)
  const done: PulledTemplate[] = []
  for (const name of only.length > 0 ? only : known.names) {
    context.output.passing(name)
    const local = await known.local(name)
    if (!local) throw absent(name)
    const action = writeTemplate(folder, local) ? "written" : "unchanged"
    done.push({ name, action, folder: join(folder, name) })
  }
  context.output.passing("")
  await context.output.list(done, { NAME: "name", ACTION: "action", FOLDER: "folder" })
  return exits.done
}

const absent = (name: string) =>
  new Failure(exits.not_found, "template_not_found", `There is no template ${name}.`, {
    hint: "`belfry templates list` shows them",
  })

interface TemplateDifference {
  [field: string]: unknown
  name: string
  state: "same" | "different" | "only_local" | "only_remote"
  diff: string
}

const diff: Action<FileOptions> = async (context, { only }, folder = "") => {
  const { output, paint } = context
  const known = await KnownTemplates.read(context.client())
  const locals = new Map(wanted(readTemplates(folder), only).map((one) => [one.name, one]))
  const found: TemplateDifference[] = []
  for (const name of new Set([...locals.keys(), ...(only ? [] : known.names)])) {
    found.push(difference(name, await known.local(name), locals.get(name)))
  }
  const other = found.filter(({ state }) => state !== "same")
  if (output.form !== "human") await output.list(found, { NAME: "name", STATE: "state" })
  else if (other.length === 0) await output.note(`${paint.green("✓")} no difference`)
  for (const { name, state, diff: text } of output.form === "human" ? other : []) {
    await output.raw(state === "different" ? text : `${WORDS[state]}: ${name}\n`)
  }
  return other.length > 0 ? exits.failed : exits.done
}

const WORDS: Record<TemplateDifference["state"], string> = {
  same: "the same",
  different: "different",
  only_local: "only in the files",
  only_remote: "only on the server",
}

function difference(
  name: string,
  remote: LocalTemplate | undefined,
  local: LocalTemplate | undefined,
): TemplateDifference {
  if (!local) return { name, state: "only_remote", diff: "" }
  if (!remote) return { name, state: "only_local", diff: "" }
  const [before, after] = [filesOf(sorted(remote)), filesOf(sorted(local))]
  const files = [...new Set([...before.keys(), ...after.keys()])].sort()
  const text = files
    .map((file) => unifiedDiff(join(name, file), before.get(file) ?? "", after.get(file) ?? ""))
    .join("")
  return { name, state: text === "" ? "same" : "different", diff: text }
}

interface CheckedTemplate {
  [field: string]: unknown
  name: string
  result: "ok" | "refused"
  error: string | null
}

const check: Action<FileOptions> = async (context, { only }, folder = "") => {
  const client = context.client()
  const known = await KnownTemplates.read(client)
  const done: CheckedTemplate[] = []
  const all = readTemplates(folder)
  for (const local of wanted(all, only)) {
    const render = () => renderFiles(client, known, local, all)
    done.push(await checkOne(local, () => patiently(context, render)))
  }
  await context.output.list(done, {
    NAME: "name",
    RESULT: "result",
    ERROR: ({ error }) => error ?? "",
  })
  return done.some(({ result }) => result === "refused") ? exits.invalid : exits.done
}

/** The server renders only so often a minute. */
const LIMIT_PAUSE = 5_000
const MOST_PAUSES = 30

async function patiently<Result>(context: Context, work: () => Promise<Result>): Promise<Result> {
  for (let pauses = 0; ; pauses++) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof Failure) || error.exit !== exits.limited) throw error
      if (pauses === MOST_PAUSES) throw error
      context.output.passing("waiting for the rate limit of renderings")
      await pause(LIMIT_PAUSE)
    }
  }
}

async function checkOne({ name }: LocalTemplate, render: () => Promise<unknown>) {
  try {
    await render()
    return { name, result: "ok" as const, error: null }
  } catch (error) {
    if (!(error instanceof Failure) || !REFUSALS.has(error.exit)) throw error
    return { name, result: "refused" as const, error: error.message }
  }
}
