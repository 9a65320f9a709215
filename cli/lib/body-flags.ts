import { statSync } from "node:fs"
import { basename } from "node:path"
import { usage } from "./errors"
import { type FieldFlags, flag } from "./field-flags"
import { quoted } from "./flags"
import { pairs, readBytes, readText } from "./input"

/** Flags of fields that several commands take in the same form. */

export const metadata = flag(
  ["--metadata <pair>", "extra data, k=v or a JSON object; may be repeated", "several"],
  pairs,
)

export const variables = flag(
  ["--var <pair>", "variable of the template, k=v or a JSON object; may be repeated", "several"],
  pairs,
)

/** `accept=Accept` or `accept=Accept=https://…`. A label has no `=`. `name` is the field of what stands first. */
export const buttons = (name: "id" | "key") =>
  flag<string[]>(
    ["--action <action>", `button, as ${name}=label or ${name}=label=url; up to three`, "several"],
    (given, option) =>
      given.map((text) => {
        const [, first, label, url] = /^([^=]+)=([^=]+)(?:=(.+))?$/s.exec(text) ?? []
        if (first !== undefined && label !== undefined)
          return { [name]: first, label, ...(url !== undefined && { url }) }
        throw usage(`${option}: "${text}" is not <${name}>=<label> or <${name}>=<label>=<url>`)
      }),
  )

export const headers = flag(
  ["--header <header>", "extra header `Name: value`; may be repeated", "several"],
  (given: string[]) => Object.fromEntries(given.filter((one) => one !== "none").map(headerField)),
)

function headerField(text: string): [string, string] {
  const at = text.indexOf(":")
  if (at < 1) throw usage(`--header: "${text}" has no colon`, "write 'X-Name: value'")
  return [text.slice(0, at).trim(), text.slice(at + 1).trim()]
}

/** Inline or from a file; `-` reads stdin. */
export const body = (name: string, what: string): FieldFlags => ({
  options: [
    [`--${name} <${name}>`, `${what}; \`-\` reads stdin`],
    [`--${name}-file <file>`, `file with the ${what}`],
  ],
  async read(options) {
    const [inline, file] = [options[name], options[`${name}File`]]
    if (inline !== undefined && file !== undefined)
      throw usage(`give either --${name} or --${name}-file`)
    if (typeof file === "string") return await readText(file, `--${name}-file`)
    if (typeof inline === "string") refuseFile(inline, `--${name}`)
    return inline === "-" ? await readText("-", `--${name}`) : inline
  },
})

/** The name of a file here, also behind an `@` as for curl, is hardly meant as a text. */
function refuseFile(inline: string, option: string): void {
  const name = inline.replace(/^@/, "")
  const is_name = /^@?[^\s<]*[./][^\s<]*$/.test(inline) || name !== inline
  const is_file = is_name && statSync(name, { throwIfNoEntry: false })?.isFile()
  if (!is_file) return
  const hint = `read the file with ${option}-file ${quoted(name)}`
  throw usage(`${option}: "${inline}" is the name of a file here, not a text`, hint)
}

export const text = body("text", "plain text body")
export const html = body("html", "HTML body")

export const attachments = flag(["--attach <file...>", "files to attach"], (paths: string[]) =>
  Promise.all(
    paths.map(async (path) => {
      const bytes = await readBytes(path, "--attach")
      const [type = "application/octet-stream"] = Bun.file(path).type.split(";")
      return {
        filename: path === "-" ? "attachment" : basename(path),
        content: Buffer.from(bytes).toString("base64"),
        content_type: path === "-" ? "application/octet-stream" : type,
      }
    }),
  ),
)
