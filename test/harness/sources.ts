import { existsSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path/posix"
import { Glob } from "bun"
import ts, { type Node } from "typescript-5"
import { root } from "./migrations"

export interface Source {
  /** From the repository's root: `src/store/queue.ts`. */
  path: string
  text: string
  /** The text without its comments: words in a comment break no rule. */
  code: string
  /** Files of ours, from the repository's root. */
  imports: string[]
  /** Everything else: `node:fs`, `elysia`. */
  packages: string[]
}

export interface Edge {
  from: string
  to: string
}

export const sources: Source[] = [...new Glob("{src,cli}/**/*.{ts,tsx}").scanSync(root)]
  .filter((path) => !path.endsWith(".d.ts"))
  .sort()
  .map(readSource)

export const edges: Edge[] = sources.flatMap(({ path, imports }) =>
  imports.map((to) => ({ from: path, to })),
)

export const show = ({ from, to }: Edge) => `${from} -> ${to}`

function readSource(path: string): Source {
  const text = readFileSync(join(root, path), "utf8")
  const code = text.replaceAll(/\/\*[\s\S]*?\*\//g, "").replaceAll(/(^|\s)\/\/.*$/gm, "")
  const targets = [...code.matchAll(/(?:\bfrom\s+|\bimport\s*\(?\s*)"([^"]+)"/g)].map(
    ([, to = ""]) => to,
  )
  const own = targets.filter((to) => to.startsWith(".")).map((to) => locate(dirname(path), to))
  return {
    path,
    text,
    code,
    imports: own.filter((to) => /\.tsx?$/.test(to)),
    packages: targets.filter((to) => !to.startsWith(".")),
  }
}

function locate(folder: string, to: string): string {
  const target = join(folder, to)
  const endings = ["", ".ts", ".tsx"].map((ending) => `${target}${ending}`)
  return (
    endings.find((path) => /\.\w+$/.test(path) && existsSync(join(root, path))) ?? `${target}.ts`
  )
}

/** The first circle that can be walked along the edges, as a list of the names on the way. */
export function circle(arrows: Edge[]): string[] | undefined {
  const importsOf = new Map<string, Set<string>>()
  for (const { from, to } of arrows) importsOf.set(from, (importsOf.get(from) ?? new Set()).add(to))
  const cleared = new Set<string>()

  function walk(name: string, trail: string[]): string[] | undefined {
    if (trail.includes(name)) return [...trail.slice(trail.indexOf(name)), name]
    if (cleared.has(name)) return undefined
    for (const next of importsOf.get(name) ?? []) {
      const found = walk(next, [...trail, name])
      if (found) return found
    }
    cleared.add(name)
    return undefined
  }

  for (const name of importsOf.keys()) {
    const found = walk(name, [])
    if (found) return found
  }
  return undefined
}

/** Everything that comes along when the file is loaded, itself included. */
export function reachable(start: string): Source[] {
  const known = new Map(sources.map((source) => [source.path, source]))
  const found = new Set<Source>()
  const open = [start]
  for (let path = open.pop(); path; path = open.pop()) {
    const source = known.get(path)
    if (!source || found.has(source)) continue
    found.add(source)
    open.push(...loaded(source))
  }
  return [...found]
}

/** `import type` is gone before anything runs. */
function loaded({ code, path, imports }: Source): string[] {
  const types = [...code.matchAll(/import type\s[^"]*"(\.[^"]+)"/g)]
  const erased = types.map(([, to = ""]) => locate(dirname(path), to))
  const values = [...code.matchAll(/import\s+(?!type\s)[^"]*"(\.[^"]+)"/g)]
  const kept = values.map(([, to = ""]) => locate(dirname(path), to))
  return imports.filter((to) => kept.includes(to) || !erased.includes(to))
}

/** The functions of a source, also those without a name, with the lines that each takes. */
export function functionsOf(path: string, text: string): { name: string; lines: number }[] {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)
  const lineOf = (at: number) => file.getLineAndCharacterOfPosition(at).line
  const found: { name: string; lines: number }[] = []
  const walk = (node: Node) => {
    if (ts.isFunctionLike(node) && "body" in node && node.body) {
      const from = lineOf(node.getStart(file))
      const name = node.name?.getText(file) ?? `the function of line ${from + 1}`
      found.push({ name, lines: lineOf(node.end) - from + 1 })
    }
    ts.forEachChild(node, walk)
  }
  walk(file)
  return found
}
