import { basename } from "node:path"
import { usage } from "./errors"
import { type FieldFlags, flag } from "./field-flags"
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
const body = (name: "text" | "html", what: string): FieldFlags => ({
  options: [
    [`--${name} <${name}>`, `${what}; \`-\` reads stdin`],
    [`--${name}-file <file>`, `file with the ${what}`],
  ],
  async read(options) {
    const [inline, file] = [options[name], options[`${name}File`]]
    if (inline !== undefined && file !== undefined)
      throw usage(`give either --${name} or --${name}-file`)
    if (typeof file === "string") return await readText(file, `--${name}-file`)
    return inline === "-" ? await readText("-", `--${name}`) : inline
  },
})

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
