import { PROVIDERS } from "../../src/channels"

const BEGIN = "<!-- written by `bun run generate` from the descriptors of the providers -->"
const END = "<!-- end of the providers -->"

/** The guide of providers, with the table of all of them as their descriptors are now. */
export function providerGuide(guide: string): string {
  const [before, after] = [guide.indexOf(BEGIN), guide.indexOf(END)]
  if (before < 0 || after < before) throw new Error("docs/providers.md has lost its marks")
  const table = [
    "| Provider | Credentials | Settings | Status of a message |",
    "|---|---|---|---|",
    ...PROVIDERS.map(rowOf),
  ]
  return `${guide.slice(0, before + BEGIN.length)}\n\n${table.join("\n")}\n\n${guide.slice(after)}`
}

function rowOf({ name, credentials, settings, reports }: (typeof PROVIDERS)[number]): string {
  const fields = Object.entries(credentials).map(([field, { fallback }]) =>
    fallback === undefined ? `\`${field}\`` : `\`${field}\` (${fallback})`,
  )
  const others = Object.keys(settings ?? {}).map((setting) => `\`${setting}\``)
  return `| \`${name}\` | ${fields.join(", ") || "–"} | ${others.join(", ") || "–"} | ${reports} |`
}
