import { readFile } from "node:fs/promises"
import { headerFields } from "../lib/mail-text"
import { contentOf, isFile, readTree, textsOf } from "../lib/mail-tree"

/** What a person reads of a message that came as bytes. */
export interface ReadParts {
  html: string | null
  text: string | null
  /** Every field of the header, names in lower case; those that occur more than once, a line each. */
  headers: Record<string, string>
}

/** The bytes, or the file that holds them. */
type Position = Uint8Array | string

const bytesAt = async (place: Position) => (typeof place === "string" ? readFile(place) : place)

/** Runs in the worker. Bodies are those of all parts that are no files; null where there is none. */
export async function readParts(place: Position): Promise<ReadParts> {
  const raw = await bytesAt(place)
  const bodies = readTree(raw).leaves.filter((leaf) => !isFile(leaf))
  return {
    html: textsOf(bodies, "text/html"),
    text: textsOf(bodies, "text/plain"),
    headers: headersOf(raw),
  }
}

/** One file of the message by its number, in the order in which its record lists them. */
export async function readMailFile({ place, number }: { place: Position; number: number }) {
  const files = readTree(await bytesAt(place)).leaves.filter(isFile)
  const leaf = files[number]
  return leaf && new Uint8Array(contentOf(leaf))
}

function headersOf(raw: Uint8Array): Record<string, string> {
  const headers = new Map<string, string>()
  for (const [name, value] of headerFields(raw)) {
    const before = headers.get(name)
    headers.set(name, before === undefined ? value : `${before}\n${value}`)
  }
  return Object.fromEntries(headers)
}
