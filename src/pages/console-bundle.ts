import { basename, extname, join } from "node:path"
import { brotliCompressSync, constants, gzipSync } from "node:zlib"

/** What a page can name in its markup: each is an entry of the bundle. */
export const ENTRIES = {
  /** The console: it loads its pages when somebody opens them. */
  main: "main.tsx",
  /** Runs before the first paint, so that a chosen theme does not flash. */
  theme: "theme.ts",
  style: "style.css",
  /** Of the reference, which is readable without it: copying, searching, trying. */
  docs: "docs.ts",
  docsStyle: "docs.css",
  /** What pages of other origins embed: the inbox of a subscriber. */
  inbox: "../component/component.ts",
  /** What their workers import, to show push messages. */
  worker: "../component/worker/push-worker.ts",
} as const

/** In the bundle of the worker, in place of the address that only a running server knows. */
export const SERVER_URL = "https://server.invalid"

export type EntryName = keyof typeof ENTRIES

/** A file of the bundle, compressed in advance. */
interface BundledFile {
  name: string
  brotli: Uint8Array
  gzip: Uint8Array
}

interface ConsoleBundle {
  files: BundledFile[]
  /** The hashed name of each entry. */
  entries: Record<EntryName, string>
  /** By the name of a page's source: the scripts that it needs, so that a browser asks for all at once. */
  pages: Record<string, string[]>
}

/** The folders of the sources. Only sources have them: the binary carries the bundle. */
const CONSOLE_FOLDER = join(import.meta.dir, "../console")
export const BROWSER_FOLDERS = [CONSOLE_FOLDER, join(import.meta.dir, "../component")]

/**
 * Bundles the console for browsers; for a release compressed as well as possible, however long that takes. Throws an
 * error that names what is wrong with its sources.
 */
export async function bundleConsole({
  is_release,
}: {
  is_release: boolean
}): Promise<ConsoleBundle> {
  const { theme, inbox, worker, ...modules } = ENTRIES
  const settings: Partial<Bun.BuildConfig> = {
    root: CONSOLE_FOLDER,
    target: "browser",
    minify: true,
    naming: "[name]-[hash].[ext]",
    publicPath: "/assets/",
    metafile: true,
    plugins: [SLIM_OPERATIONS],
    define: { IS_DEVELOPMENT: String(!is_release) },
  }
  const built = await Promise.all([
    build({ ...settings, entrypoints: Object.values(modules).map(pathOf), splitting: true }),
    // No module: it must run before the browser shows anything.
    build({ ...settings, entrypoints: [pathOf(theme)], format: "iife" }),
    // One file for pages of others, which shares nothing with the console.
    build({ ...settings, entrypoints: [pathOf(inbox)] }),
    // No module: `importScripts` takes none.
    build({
      ...{ ...settings, entrypoints: [pathOf(worker)], format: "iife" },
      define: { SERVER_URL: JSON.stringify(SERVER_URL) },
    }),
  ])
  const files = await Promise.all(
    built.flatMap(({ outputs }) => outputs).map((output) => compressed(output, is_release)),
  )
  const named = Object.entries(ENTRIES).map(([entry, source]) => [entry, nameOf(source, files)])
  const graph = built[0].metafile?.outputs ?? {}
  return { files, entries: Object.fromEntries(named), pages: scriptsOfPages(graph) }
}

type OutputGraph = NonNullable<Bun.BuildOutput["metafile"]>["outputs"]

/** Each page with all that it imports, and that imports: what its first visit waits for. */
function scriptsOfPages(graph: OutputGraph): Record<string, string[]> {
  const pages: Record<string, string[]> = {}
  for (const [path, { entryPoint }] of Object.entries(graph)) {
    const [, page] = /\/pages\/([\w-]+)\.tsx$/.exec(entryPoint ?? "") ?? []
    if (page === undefined) continue
    const found = new Set([path])
    for (const script of found) {
      for (const { path: next, kind } of graph[script]?.imports ?? [])
        if (kind === "import-statement") found.add(next)
    }
    pages[page] = [...found].map((script) => basename(script))
  }
  return pages
}

const OPERATIONS = join(CONSOLE_FOLDER, "../client/operations.ts")

/**
 * Of the table of operations a page needs the names and the few content types. Summaries and fields are for
 * the command line, and would be a third of the first script.
 */
const SLIM_OPERATIONS: Bun.BunPlugin = {
  name: "slim-operations",
  setup(build) {
    build.onLoad({ filter: /[\\/]client[\\/]operations\.ts$/ }, async () => {
      const { operations } = (await import(OPERATIONS)) as { operations: OperationTable }
      const rows = Object.entries(operations).map(([name, { produces }]) => [name, { produces }])
      const contents = `export const operations = ${JSON.stringify(Object.fromEntries(rows))}`
      return { contents, loader: "js" }
    })
  },
}

type OperationTable = Record<string, { produces?: string }>

/** The runtime says only that the bundle failed; a person needs the lines of each mistake. */
async function build(settings: Bun.BuildConfig): Promise<Bun.BuildOutput> {
  const built = await Bun.build({ ...settings, throw: false })
  if (built.success) return built
  throw new Error(`The scripts for browsers could not be bundled.\n${built.logs.join("\n")}`)
}

const pathOf = (source: string) => join(CONSOLE_FOLDER, source)

async function compressed(output: Bun.BuildArtifact, is_release: boolean): Promise<BundledFile> {
  const bytes = new Uint8Array(await output.arrayBuffer())
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: is_release ? 11 : 4,
    [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
  }
  return {
    name: basename(output.path),
    brotli: brotliCompressSync(bytes, { params }),
    gzip: gzipSync(bytes, { level: is_release ? 9 : 1 }),
  }
}

function nameOf(source: string, files: BundledFile[]): string {
  const stem = basename(source, extname(source))
  const kind = extname(source) === ".css" ? ".css" : ".js"
  const found = files.find(({ name }) => name.startsWith(`${stem}-`) && name.endsWith(kind))
  if (!found) throw new Error(`The bundle of the console has no file for ${source}.`)
  return found.name
}
