import { watch } from "node:fs"
import { join, sep } from "node:path"
import type { Components } from "../../src/client/components"
import type { Client } from "../lib/client"
import type { Action, Context } from "../lib/context"
import { exits, Failure } from "../lib/errors"
import type { OptionWords } from "../lib/field-flags"
import { patiently } from "../lib/file-import"
import { kindOf, requireKind } from "../lib/folder-files"
import { listUpTo } from "../lib/paging"
import { own } from "../lib/resource"
import { unifiedDiff } from "../lib/template-diff"
import {
  filesOf,
  inOrder,
  inputOf,
  type LocalTemplate,
  localForm,
  readTemplates,
  writeTemplate,
} from "../lib/template-folder"
import { clockTime, millis, pause } from "../lib/time"

type Template = Components["Template"]

interface FileOptions {
  only?: string[]
  draft?: boolean
  watch?: boolean
}

/** What the server has, by name and id. Whole templates are read when they are asked for. */
class KnownTemplates {
  readonly #client: Client
  readonly #ids = new Map<string, string>()

  private constructor(client: Client) {
    this.#client = client
  }

  static async read(client: Client): Promise<KnownTemplates> {
    const known = new KnownTemplates(client)
    const { rows } = await listUpTo(client, "GET /v1/templates", Number.MAX_SAFE_INTEGER)
    for (const { id, name } of rows) known.#ids.set(name, id)
    return known
  }

  get names(): string[] {
    return [...this.#ids.keys()].sort()
  }

  /** The server's form of `local`, whose layout must be known. Throws with exit 3. */
  inputOf = (local: LocalTemplate) =>
    inputOf(local, (layout) => {
      const id = this.#ids.get(layout)
      if (id !== undefined) return id
      const hint = "push the layout too, or correct the name in template.json"
      throw new Failure(exits.not_found, "template_not_found", `There is no layout ${layout}.`, {
        hint,
      })
    })

  async find(name: string): Promise<{ template: Template; local: LocalTemplate } | undefined> {
    const template_id = this.#ids.get(name)
    if (template_id === undefined) return undefined
    const params = { template_id }
    const template = (await this.#client.call("GET /v1/templates/{template_id}", { params })).data
    const names = new Map([...this.#ids].map(([name, id]) => [id, name]))
    return { template, local: localForm(template, (id) => names.get(id) ?? id) }
  }

  /** Stores a template, in the place of the one with its name. */
  async store(local: LocalTemplate, more: { draft?: boolean }): Promise<Template> {
    const template_id = this.#ids.get(local.name)
    const body = { ...this.inputOf(local), ...more }
    const answer = template_id
      ? this.#client.send("PUT /v1/templates/{template_id}", { params: { template_id }, body })
      : this.#client.send("POST /v1/templates", { body })
    const { data } = (await answer) as { data: Template }
    this.#ids.set(data.name, data.id)
    return data
  }
}

type PushedTemplate = {
  name: string
  action: "created" | "updated" | "unchanged" | "refused"
  version: number | null
  error: string | null
}

const push: Action<FileOptions> = async (context, options, folder = ""): Promise<number> => {
  const changed = new Set<string>()
  const hear = (_: string, file: string | null) => {
    const [name] = (file ?? "").split(sep)
    if (name) changed.add(name)
  }
  // Begun before the first push, so that no save is missed.
  if (options.watch) watch(folder, { recursive: true }, hear)
  const done = await pushAll(context, wanted(readTemplates(folder), options.only), options)
  await context.output.list(done, {
    NAME: "name",
    ACTION: "action",
    VERSION: ({ version }) => String(version ?? ""),
    ERROR: ({ error }) => error ?? "",
  })
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

async function pushAll(context: Context, templates: LocalTemplate[], { draft }: FileOptions) {
  const known = await KnownTemplates.read(context.client())
  const done: PushedTemplate[] = []
  for (const [place, local] of inOrder(templates).entries()) {
    const { name } = local
    context.output.passing(`${place + 1} of ${templates.length}: ${name}`)
    const pushed = await orRefusal(async () => {
      const before = await known.find(name)
      const is_same = before && Bun.deepEquals(filesOf(local), filesOf(before.local))
      if (is_same) return { action: "unchanged" as const, version: before.template.version }
      const { version } = await known.store(local, draft ? { draft } : {})
      return { action: before ? ("updated" as const) : ("created" as const), version }
    })
    const outcome =
      typeof pushed === "string"
        ? { action: "refused" as const, version: null, error: pushed }
        : { ...pushed, error: null }
    done.push({ name, ...outcome })
  }
  context.output.passing("")
  return done.sort((one, other) => (one.name < other.name ? -1 : 1))
}

/** What concerns one template; anything else ends the command. */
const REFUSALS = new Set<number>([exits.invalid, exits.conflict, exits.not_found])

/** What the work came to, or why the server refused it. */
async function orRefusal<Result>(work: () => Promise<Result>): Promise<Result | string> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Failure) || !REFUSALS.has(error.exit)) throw error
    return error.message
  }
}

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
    for (const one of await pushAll(context, all, options)) {
      const mark = one.action === "refused" ? paint.red("✗") : paint.green("✓")
      const line = `${mark} ${clockTime(new Date(millis()).toISOString())}  ${one.name} ${one.action}  ${one.error ?? ""}`
      await output.line(one, () => line.trimEnd())
    }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    await output.note(`${paint.red("✗")} ${error.message}`)
  }
}

const pull: Action<object> = async (context, _, folder = "", ...rest) => {
  if (kindOf(folder) === "file") requireKind(folder, "folder")
  const only = rest.flat()
  const known = await KnownTemplates.read(context.client())
  const absent = only.find((name) => !known.names.includes(name))
  if (absent !== undefined) {
    const message = `There is no template ${absent}.`
    const hint = "`belfry templates list` shows them"
    throw new Failure(exits.not_found, "template_not_found", message, { hint })
  }
  const done: { name: string; action: string; folder: string }[] = []
  for (const name of only.length > 0 ? only : known.names) {
    context.output.passing(name)
    const found = await known.find(name)
    if (!found) continue
    const action = writeTemplate(folder, found.local) ? "written" : "unchanged"
    done.push({ name, action, folder: join(folder, name) })
  }
  context.output.passing("")
  await context.output.list(done, { NAME: "name", ACTION: "action", FOLDER: "folder" })
  return exits.done
}

type TemplateDifference = {
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
    found.push(difference(name, (await known.find(name))?.local, locals.get(name)))
  }
  const other = found.filter(({ state }) => state !== "same")
  if (output.form !== "human") await output.list(found, { NAME: "name", STATE: "state" })
  else if (other.length === 0) await output.note(`${paint.green("✓")} no difference`)
  for (const { name, state, diff: text } of output.form === "human" ? other : []) {
    const where = state === "only_local" ? "in the files" : "on the server"
    await output.raw(state === "different" ? text : `only ${where}: ${name}\n`)
  }
  return other.length > 0 ? exits.failed : exits.done
}

function difference(
  name: string,
  remote: LocalTemplate | undefined,
  local: LocalTemplate | undefined,
): TemplateDifference {
  if (!local) return { name, state: "only_remote", diff: "" }
  if (!remote) return { name, state: "only_local", diff: "" }
  const [before, after] = [filesOf(remote), filesOf(local)]
  const files = [...new Set([...before.keys(), ...after.keys()])].sort()
  const text = files
    .map((file) => unifiedDiff(join(name, file), before.get(file) ?? "", after.get(file) ?? ""))
    .join("")
  return { name, state: text === "" ? "same" : "different", diff: text }
}

/** The server renders only so often a minute. What one template waits for has an end, so that a check has one. */
const RENDERING = {
  most_limits: 30,
  hint: "a check begins anew: name a part of the templates with --only",
}

/** Each template as it would be sent, with the layouts and partials that stand in the same folder. */
const check: Action<FileOptions> = async (context, { only }, folder = "") => {
  const client = context.client()
  const known = await KnownTemplates.read(client)
  const all = readTemplates(folder)
  const done: { name: string; result: "ok" | "refused"; error: string | null }[] = []
  for (const local of wanted(all, only)) {
    const refused = await orRefusal(async () => {
      const { template, variables } = withNeighbours(local, all)
      const { name: _, ...body } = known.inputOf(template)
      const input = { body: { template: body, variables } }
      await patiently(context, () => client.send("POST /v1/templates/render", input), RENDERING)
    })
    const result = refused === undefined ? "ok" : "refused"
    done.push({ name: local.name, result, error: refused ?? null })
  }
  const columns = { NAME: "name", RESULT: "result" } as const
  await context.output.list(done, { ...columns, ERROR: ({ error }) => error ?? "" })
  return done.some(({ result }) => result === "refused") ? exits.invalid : exits.done
}

/** Where a layout has the mail. */
const CONTENT = /\{\{\{\s*content\s*\}\}\}/

/** As deep as the server goes. */
const DEPTH = 5

/** A partial without values of its own. */
const PLAIN_PARTIAL = /\{\{>\s*([a-z0-9][a-z0-9_.-]*)\s*\}\}/g

/**
 * A template with the layout and the partials of its folder written into it, and the variables of its
 * example. A layout is shown around a sample.
 */
export function withNeighbours(
  template: LocalTemplate,
  folder: LocalTemplate[],
): { template: LocalTemplate; variables: Record<string, unknown> } {
  const byName = new Map(folder.map((one) => [one.name, one]))
  const fill = (source: string, file: string, depth = DEPTH): string =>
    source.replace(PLAIN_PARTIAL, (all, name) => {
      const found = depth > 0 ? byName.get(name)?.bodies[file] : undefined
      return found === undefined ? all : fill(found, file, depth - 1)
    })
  const layouts: LocalTemplate[] = []
  let { layout, ...settings } = template.settings
  for (let found = byName.get(layout ?? ""); found && layouts.length < DEPTH; ) {
    layouts.push(found)
    layout = found.settings.layout
    found = byName.get(layout ?? "")
  }
  const bodies = { ...template.bodies }
  for (const [file, own] of Object.entries(template.bodies)) {
    bodies[file] = layouts.reduce(
      (inner, { bodies: frames }) => {
        const frame = frames[file]
        return frame === undefined ? inner : fill(frame, file).replace(CONTENT, () => inner)
      },
      fill(own, file),
    )
  }
  const is_layout = CONTENT.test(bodies["email.html"] ?? "")
  const sample = is_layout ? { content: "<p>The text of the mail.</p>" } : {}
  return {
    template: { ...template, settings: { ...settings, ...(layout && { layout }) }, bodies },
    variables: { ...sample, ...template.example },
  }
}

const ONLY: OptionWords = ["--only <name...>", "names of templates (default: all)"]

/** Templates as files in git: one folder each. */
export const fileRows = [
  own("pull <folder> [names...]", pull, {
    about: "write templates into files, one folder each",
    word: "templates",
    example: ["", "receipt"],
  }),
  own("push <folder>", push, {
    about: "create and change templates from files; exit 8 if some are refused",
    word: "templates",
    example: ["", "--watch"],
    options: [
      ONLY,
      ["--draft", "do not publish the new versions"],
      ["--watch", "go on and push each change until Ctrl-C"],
    ],
  }),
  own("check <folder>", check, {
    about: "render the files with the values of their example.json; exit 7 if one fails",
    word: "templates",
    options: [ONLY],
  }),
  own("diff <folder>", diff, {
    about: "show how the files differ from the server; exit 1 if they do",
    word: "templates",
    options: [ONLY],
  }),
]
