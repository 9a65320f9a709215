import type { Components } from "../../src/client/components"
import { variables } from "../lib/body-flags"
import { type FieldFlags, flag } from "../lib/field-flags"
import { objectIn, readText } from "../lib/input"
import { idByName } from "../lib/paging"
import { deletes, type PlainFlags, row } from "../lib/resource"
import { ago, type Columns, coloured, recordText, wide } from "../lib/table"
import type { Paint } from "../lib/terminal"
import { fileRows } from "./template-files"

type Template = Components["Template"]

const id = idByName({
  noun: "template",
  route: "GET /v1/templates",
  filter: "search",
  field: "name",
  code: "template_not_found",
  hint: () => "`belfry templates list` shows the names",
})

const columns: Columns<Components["TemplateSummary"]> = {
  NAME: wide(({ name }) => name),
  STATUS: coloured(({ status }) => status, { published: "green" }, "yellow"),
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

const templateText = (template: Template, paint: Paint): string => {
  const { subject, html, text, locales, channels } = template
  const about = recordText(template, paint, {
    ...{ subject: null, html: null, text: null, variables: null, project_id: null },
    version: versionCell(template),
    published_version: null,
    channels: Object.keys(channels),
    locales: locales.map(({ locale }) => locale),
  })
  return [about, ...textParts({ subject, html, text }, paint)].join("\n")
}

const textParts = (parts: object, paint: Paint): string[] =>
  Object.entries(parts).flatMap(([name, text]) => (text ? [`\n${paint.bold(name)}\n${text}`] : []))

const HTML = flag(["--html-file <file>", "file with the HTML text; - reads stdin"], readText)
const TEXT = flag(["--text-file <file>", "file with the plain text"], readText)
const layout = (more: string) =>
  flag(["--layout <id>", `id of the template that encloses the text${more}`], (id) =>
    id === "none" ? null : id,
  )

/** Fields without a flag are in `--file`, which has them all. */
const FIELDS: PlainFlags = {
  ...{ html: HTML, text: TEXT, layout_id: layout("; none removes it"), variables: false },
  subject: "Handlebars text of the subject",
  draft: flag(["--draft", "do not publish this version"]),
  description: "description; none removes it",
  locale: "language of the texts as a BCP 47 tag; none removes it",
  tags: "label of the template; may be repeated",
}

const VARIABLES: FieldFlags = {
  options: [
    ...variables.options,
    ["--vars-file <file>", "JSON file with an object of variables; --var replaces its values"],
  ],
  async read(options, context) {
    const own = await objectIn(options.varsFile, "--vars-file")
    return { ...own, ...((await variables.read(options, context)) as object | undefined) }
  },
}

const isNow = ({ name, status, version }: Template): string =>
  `${name} is ${status}, version ${version}`

export const wrote = ({ name, version, published_version }: Template): string =>
  published_version === version
    ? `published version ${version} of ${name}`
    : `stored version ${version} of ${name} as a draft`

/** Templates of the project. A command takes the id or the name. */
export const templateRows = [
  row("create", "POST /v1/templates", {
    about: "create a template from files, and publish it",
    example: "--name receipt --subject 'Receipt {{number}}' --html-file receipt.html",
    flags: { ...FIELDS, name: "name: a-z, 0-9, _, . and -" },
    file: {},
    refuse: ({ name, file }) => (name || file ? undefined : "--name is missing"),
    done: wrote,
    next: ({ name }) => `templates render ${name}`,
  }),
  row("list", "GET /v1/templates", {
    example: "--status draft --search receipt",
    columns,
  }),
  row("get <template>", "GET /v1/templates/{template_id}", {
    about: "show one template with its texts",
    id,
    shown: templateText,
    next: ({ name }) => `templates render ${name}`,
  }),
  row("edit <template>", "PATCH /v1/templates/{template_id}", {
    about: "change a template; what has no flag stays",
    example: ["--subject 'Your receipt'", "--html-file receipt.html --draft"],
    id,
    flags: { ...FIELDS, name: "new name" },
    file: {},
    done: wrote,
    next: ({ name, version, published_version: used }) =>
      used === version ? undefined : `templates publish ${name}`,
  }),
  row("delete <template>", "DELETE /v1/templates/{template_id}", {
    about: "delete a template with all of its versions",
    id,
    flags: { force: "also delete it while something uses it: on or off (default: off)" },
    ...deletes((name) => `The template ${name} and its versions will be deleted.`),
  }),
  row("publish <template>", "POST /v1/templates/{template_id}/publish", {
    about: "let sends use the newest version, or another one",
    example: ["", "--version 2"],
    id,
    flags: { version: "number of the version (default: the newest)" },
    done: ({ name, published_version }) => `published version ${published_version} of ${name}`,
  }),
  row("archive <template>", "POST /v1/templates/{template_id}/archive", {
    about: "refuse sends with this template; publish brings it back",
    id,
    done: isNow,
  }),
  row("duplicate <template>", "POST /v1/templates/{template_id}/duplicate", {
    example: "--name receipt-2",
    id,
    flags: { name: "name of the copy (default: the name with -copy)" },
    done: ({ name }) => `created ${name}`,
  }),
  row("versions <template>", "GET /v1/templates/{template_id}/versions", {
    id,
    columns: {
      VERSION: ({ version }) => String(version),
      PUBLISHED: ({ published }) => (published ? "yes" : ""),
      BY: ({ created_by }) => created_by.type,
      NOTE: wide(({ note }) => note ?? ""),
      AGE: ago(({ created_at }) => created_at),
    },
  }),
  row("version <template> <version>", "GET /v1/templates/{template_id}/versions/{version}", {
    id,
    shown: templateText,
    next: ({ name, version, published_version: used }) =>
      used === version ? undefined : `templates rollback ${name} --version ${version}`,
  }),
  row("rollback <template>", "POST /v1/templates/{template_id}/rollback", {
    about: "publish the texts of an old version again, as a new version",
    example: "--version 1",
    id,
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
    options: VARIABLES.options,
    input: (options, _, context) => VARIABLES.read(options, context) as Promise<object>,
    shown: renderedText,
    brief: ({ html, text, body }) => html ?? text ?? body,
  }),
  row("render-draft", "POST /v1/templates/render", {
    about: "render texts from files that are not stored",
    example: "--subject 'Hi {{name}}' --html-file receipt.html --var name=Ann",
    flags: {
      channel: "channel to render (default: email)",
      template: {
        options: [
          ["--file <file>", "JSON body of POST /v1/templates; other flags replace its fields"],
        ],
        read: ({ file }) => objectIn(file, "--file"),
      },
      "template.subject": flag(["--subject <text>", "Handlebars text of the subject"]),
      ...{ "template.html": HTML, "template.text": TEXT },
      "template.layout_id": layout(""),
      variables: VARIABLES,
    },
    shown: renderedText,
    brief: ({ html, text, body }) => html ?? text ?? body,
  }),
  row("test-send <template> <to>", "POST /v1/templates/{template_id}/test-send", {
    example: "--var name=Ann",
    id,
    flags: {
      variables: VARIABLES,
      version: "number of the version (default: the published one)",
    },
    done: ({ id }, [name, to]) => `sent ${name} to ${to} (${id})`,
    next: ({ id }) => `emails get ${id}`,
  }),
  ...fileRows,
]

function renderedText(rendered: Components["RenderedTemplate"], paint: Paint): string {
  const { subject, preheader, title, body, html, text, ...rest } = rendered
  const texts = textParts({ subject, preheader, title, body, html, text }, paint)
  return [recordText(rest, paint), ...texts].join("\n")
}
