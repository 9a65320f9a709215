import { readFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "../harness/migrations"

/** A block of code as a reader copies it. */
export interface CodeBlock {
  path: string
  /** Of its first line of code. */
  line: number
  /** The heading above it. */
  heading: string
  /** As the fence names it: `sh`, `ts`; empty without a name. */
  language: string
  code: string
}

/** The fenced blocks of a page, in order. `path` is from the repository's root. */
export function codeBlocks(path: string): CodeBlock[] {
  const found: CodeBlock[] = []
  let heading = ""
  let open: CodeBlock | undefined
  for (const [at, line] of readFileSync(join(root, path), "utf8").split("\n").entries()) {
    const fence = /^```(\w*)$/.exec(line)
    if (fence && open) open = undefined
    else if (fence) {
      open = { path, line: at + 2, heading, language: fence[1] ?? "", code: "" }
      found.push(open)
    } else if (open) open.code += `${line}\n`
    else heading = /^#+ (.*)/.exec(line)?.[1] ?? heading
  }
  return found
}
