import type { Command } from "commander"
import type { Components } from "../../src/client/components"
import type { Client } from "../lib/client"
import { exits, Failure, usage } from "../lib/errors"
import { VARIABLE } from "../lib/flags"
import { isWholeId } from "../lib/id-kinds"
import { given, pairs, parsedObject, readJson, readText } from "../lib/input"
import { listUpTo } from "../lib/paging"
import { asks, type PlainFlags, type PlainOptions, row } from "../lib/resource"
import { several } from "../lib/run"
import { ago, type Columns, fields, wide } from "../lib/table"
import { cleanLine, type Paint } from "../lib/terminal"

type Template = Components["Template"]

const MOST_NAMESAKES = 1000

/** The id of a template, by its id or its name. Throws with exit 3. */
export async function templateId(client: Client, named: string): Promise<string> {
  if (isWholeId(named)) return named
  const query = { search: named }
  const { rows } = await listUpTo(client, "GET /v1/templates", MOST_NAMESAKES, { query })
  const found = rows.find(({ name }) => name === named)
  if (found) return found.id
  const hint = "`belfry templates list` shows the names"
  const message = `There is no template ${cleanLine(named)}.`
  throw new Failure(exits.not_found, "template_not_found", message, { hint })
}

const columns: Columns<Components["TemplateSummary"]> = {
  NAME: wide(({ name }) => name),
  STATUS: {
    cell: ({ status }) => status,
    paint: (text, { status }, paint) =>
      status === "published" ? paint.green(text) : paint.yellow(text),
  },
  VERSION: versionCell,
  SUBJECT: wide(({ subject }) => subject ?? ""),
  SENT: ago(({ last_sent_at }) => last_sent_at, "never"),
  CHANGED: ago(({ updated_at }) => updated_at),
}

/** `3`, or `3 (published: 2)` where sends use another one. */
function versionCell({
  version,
  published_version: used,
}: Pick<Template, "version" | "published_version">) {
  return used === null || used === version ? String(version) : `${version} (published: ${used})`
}

const shownTemplate = (template: Template, paint: Paint): string => {
  const about = fields(
    [
      ["id", template.id],
      ["name", template.name],
      ["description", template.description],
      ["status", template.status],
      ["version", versionCell(template)],
      ["channels", Object.keys(template.channels).join(" ")],
      ["languages", template.locales.map(({ locale }) => locale).join(" ")],
      ["variables", template.detected_variables.join(" ")],
      ["tags", template.tags.join(" ")],
      ["last sent", template.last_sent_at],
      ["changed", template.updated_at],
    ],
    paint,
  )
  const parts = [
    ["subject", template.subject],
    ["html", template.html],
    ["text", template.text],
  ] as const
  const texts = parts.flatMap(([name, text]) => (text ? [`\n${paint.bold(name)}\n${text}`] : []))
  return [about, ...texts].join("\n")
}

/** Fields that have no flag of their own; `--file` has them all. */
const NO_FLAG: PlainFlags = {
  ...{ channels: false, variables: false, locales: false, draft: false, layout_id: false },
  ...{ html: false, text: false, alias: false, from: false, reply_to: false },
  subject: "Handlebars text of the subject",
  description: "description; none removes it",
  locale: "language of the texts as a BCP 47 tag; none removes it",
  tags: "label of the template; may be repeated",
}

const textOptions = (command: Command): Command =>
  command
    .option("--html-file <file>", "file with the HTML text; - reads stdin")
    .option("--text-file <file>", "file with the plain text")
    .option("--layout <id>", "id of the template that goes around the text; none removes it")
    .option("--file <file>", "JSON body of POST /v1/templates; other flags replace its fields")
    .option("--draft", "do not publish this version")

async function textBody(options: PlainOptions): Promise<object> {
  const { file, htmlFile, textFile, layout, draft } = options as Partial<Record<string, string>>
  const own = file === undefined ? {} : await readJson(file, "--file")
  if (typeof own !== "object" || own === null || Array.isArray(own)) {
    throw usage("--file: the file must have one JSON object")
  }
  return {
    ...own,
    ...given({
      html: htmlFile === undefined ? undefined : await readText(htmlFile, "--html-file"),
      text: textFile === undefined ? undefined : await readText(textFile, "--text-file"),
      layout_id: layout === "none" ? null : layout,
      draft: draft ? true : undefined,
    }),
  }
}

const variableOptions = (command: Command): Command =>
  command
    .option(...VARIABLE, several)
    .option(
      "--vars-file <file>",
      "JSON file with an object of variables; --var replaces its values",
    )

/** The variables of the flags. */
export async function variablesOf({ var: pairsGiven, varsFile }: PlainOptions) {
  const own = typeof varsFile === "string" ? await readText(varsFile, "--vars-file") : undefined
  const list = Array.isArray(pairsGiven) ? pairsGiven : []
  return {
    ...(own === undefined ? {} : parsedObject(own, "--vars-file")),
    ...pairs(list, "--var"),
  }
}

const isNow = ({ name, status, version }: Template): string =>
  `${name} is ${status}, version ${version}`

const wrote = ({ name, version, published_version }: Template): string =>
  published_version === version
    ? `published version ${version} of ${name}`
    : `stored version ${version} of ${name} as a draft`

/** Templates of the project. A command takes the id or the name. */
export const templateRows = [
  row("create", "POST /v1/templates", {
    about: "create a template from files, and publish it",
    example: "--name receipt --subject 'Receipt {{number}}' --html-file receipt.html",
    flags: { ...NO_FLAG, name: "name: a-z, 0-9, _, . and -" },
    options: textOptions,
    body: textBody,
    done: wrote,
    next: ({ name }) => `templates render ${name}`,
  }),
  row("list", "GET /v1/templates", {
    example: "--status draft --search receipt",
    columns,
  }),
  row("get <template>", "GET /v1/templates/{template_id}", {
    about: "show one template with its texts",
    id: templateId,
    shown: shownTemplate,
    next: ({ name }) => `templates render ${name}`,
  }),
  row("edit <template>", "PATCH /v1/templates/{template_id}", {
    about: "change a template; what has no flag stays",
    example: ["--subject 'Your receipt'", "--html-file receipt.html --draft"],
    id: templateId,
    flags: { ...NO_FLAG, name: "new name" },
    options: textOptions,
    body: textBody,
    done: wrote,
    next: ({ name, version, published_version: used }) =>
      used === version ? undefined : `templates publish ${name}`,
  }),
  row("delete <template>", "DELETE /v1/templates/{template_id}", {
    about: "delete a template with all of its versions",
    example: "--yes",
    id: templateId,
    flags: { force: "also delete it while something uses it: on or off (default: off)" },
    confirm: asks((name) => `The template ${name} and its versions will be deleted.`, "delete"),
    done: (_, [name]) => `deleted ${name}`,
  }),
  row("publish <template>", "POST /v1/templates/{template_id}/publish", {
    about: "let sends use the newest version, or another one",
    example: ["", "--version 2"],
    id: templateId,
    flags: { version: "number of the version (default: the newest)" },
    done: ({ name, published_version }) => `published version ${published_version} of ${name}`,
  }),
  row("archive <template>", "POST /v1/templates/{template_id}/archive", {
    about: "refuse sends with this template; publish brings it back",
    id: templateId,
    done: isNow,
  }),
  row("duplicate <template>", "POST /v1/templates/{template_id}/duplicate", {
    about: "copy a template",
    example: "--name receipt-2",
    id: templateId,
    flags: { name: "name of the copy (default: the name with -copy)" },
    done: ({ name }) => `created ${name}`,
  }),
  row("versions <template>", "GET /v1/templates/{template_id}/versions", {
    about: "list the versions of a template, newest first",
    id: templateId,
    columns: {
      VERSION: ({ version }) => String(version),
      PUBLISHED: ({ published }) => (published ? "yes" : ""),
      BY: ({ created_by }) => created_by.type,
      NOTE: wide(({ note }) => note ?? ""),
      AGE: ago(({ created_at }) => created_at),
    },
  }),
  row("version <template> <version>", "GET /v1/templates/{template_id}/versions/{version}", {
    about: "show a template with the texts of one version",
    id: templateId,
    shown: shownTemplate,
    next: ({ name, version, published_version: used }) =>
      used === version ? undefined : `templates rollback ${name} --version ${version}`,
  }),
  row("rollback <template>", "POST /v1/templates/{template_id}/rollback", {
    about: "publish the texts of an old version again, as a new version",
    example: "--version 1",
    id: templateId,
    flags: { version: "number of the old version" },
    done: ({ name, version }) => `published the old texts of ${name} as version ${version}`,
  }),
  row("render <template>", "POST /v1/templates/{template_id}/render", {
    about: "render a template, and print the result",
    example: ["--var name=Ann --var number=1042", "--vars-file data.json --locale de"],
    flags: {
      channel: "channel to render: email, push, sms or in_app (default: the first that it has)",
      version: "number of the version (default: the published one)",
      locale: "language of the texts",
    },
    options: variableOptions,
    body: variablesOf,
    shown: shownRendered,
    brief: ({ html, text, body }) => html ?? text ?? body,
  }),
  row("render-draft", "POST /v1/templates/render", {
    about: "render texts from files that are not stored",
    example: "--subject 'Hi {{name}}' --html-file receipt.html --var name=Ann",
    flags: { template: false, variables: false, channel: "channel to render (default: email)" },
    options: (command) =>
      variableOptions(
        command
          .option("--subject <text>", "Handlebars text of the subject")
          .option("--html-file <file>", "file with the HTML text; - reads stdin")
          .option("--text-file <file>", "file with the plain text")
          .option("--layout <id>", "id of the template that goes around the text")
          .option(
            "--file <file>",
            "JSON body of POST /v1/templates; other flags replace its fields",
          ),
      ),
    body: async ({ subject, ...options }) => ({
      template: { ...(await textBody(options)), ...given({ subject }) },
      variables: await variablesOf(options),
    }),
    shown: shownRendered,
    brief: ({ html, text, body }) => html ?? text ?? body,
  }),
  row("test-send <template> <to>", "POST /v1/templates/{template_id}/test-send", {
    about: "send a template to one address as a test",
    example: "--var name=Ann",
    id: templateId,
    flags: { variables: false, version: "number of the version (default: the published one)" },
    options: variableOptions,
    body: async (options) => ({ variables: await variablesOf(options) }),
    done: ({ id }, [name, to]) => `sent ${name} to ${to} (${id})`,
    next: ({ id }) => `emails get ${id}`,
  }),
]

function shownRendered(rendered: Components["RenderedTemplate"], paint: Paint): string {
  const { missing_variables: missing, unknown_variables: unknown, sms } = rendered
  const about = fields(
    [
      ["version", rendered.version],
      ["channel", rendered.channel],
      ["size", `${rendered.size_bytes} bytes`],
      ["sms", sms && `${sms.segments} segments, ${sms.encoding}`],
      ["without a value", missing.join(" ")],
      ["used nowhere", unknown.join(" ")],
    ],
    paint,
  )
  const names = ["subject", "preheader", "title", "body", "html", "text"] as const
  const texts = names.flatMap((name) =>
    rendered[name] ? [`\n${paint.bold(name)}\n${rendered[name]}`] : [],
  )
  return [about, ...texts].join("\n")
}
