/** `bun run check`: everything that can be said about the sources without running them. */
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { clientSources } from "./client-source"
import { COMMAND_LINES, commandLinesSource } from "./command-lines"
import { findings } from "./english"
import { productionTree } from "./licences"
import {
  drizzleKit,
  EMBEDDED,
  ENGINES,
  type Engine,
  embeddedSource,
  journal,
  root,
  snapshots,
  sqlFiles,
} from "./migrations"
import { published } from "./published"

/** Resolves to what is wrong; an empty list is a pass. */
type Step = () => Promise<string[]>

const read = (path: string) => readFileSync(join(root, path), "utf8")

/** A development tool, run by this Bun: a machine without Node has no other interpreter. */
async function tool(...args: string[]): Promise<string[]> {
  const run = Bun.spawn({
    cmd: [process.execPath, ...args],
    cwd: root,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  })
  const output = (await run.stdout.text()) + (await run.stderr.text())
  return (await run.exited) === 0 ? [] : [output.trim() || `${args[0]} failed`]
}

/** Of one project: browsers know other words than the server. */
const types = (project: string) =>
  tool("node_modules/typescript/bin/tsc", "--noEmit", "--pretty", "false", "-p", project)

/** The tables and the migrations tell the same schema: drizzle-kit finds nothing to add. */
async function drift(engine: Engine): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), "belfry-drift-"))
  try {
    const landed = join(root, "migrations", engine)
    if (existsSync(landed)) cpSync(landed, folder, { recursive: true })
    const before = sqlFiles(folder)
    await drizzleKit(engine, folder, "missing")
    const missing = sqlFiles(folder).filter((name) => !before.includes(name))
    const texts = missing.map((name) => readFileSync(join(folder, name), "utf8"))
    return texts.map((sql) => `run \`bun run generate <name>\`; not yet migrated:\n${head(sql)}`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const SHOWN_LINES = 20

function head(text: string): string {
  const lines = text.split("\n")
  const rest = lines.length - SHOWN_LINES
  return rest > 0 ? [...lines.slice(0, SHOWN_LINES), `… ${rest} more lines`].join("\n") : text
}

/** A migration with an older stamp than its neighbour before it would be skipped in silence. */
async function stamps(): Promise<string[]> {
  return ENGINES.flatMap((engine) => {
    const entries = journal(engine)
    const late = entries.filter(({ when }, at) => at > 0 && when <= (entries[at - 1]?.when ?? 0))
    const listed = entries.map(({ tag }) => `${tag}.sql`).join()
    const found = sqlFiles(join(root, "migrations", engine)).join()
    const newest = `${String(entries.at(-1)?.idx).padStart(4, "0")}_snapshot.json`
    const kept = snapshots(engine).join()
    return [
      ...late.map(({ tag }) => `${engine}: ${tag} is stamped earlier than the one before it`),
      ...(listed === found ? [] : [`${engine}: the journal lists ${listed}, the folder ${found}`]),
      ...(kept === newest ? [] : [`${engine}: meta/ holds ${kept}, and needs only ${newest}`]),
    ]
  })
}

async function embedded(): Promise<string[]> {
  return read(EMBEDDED) === embeddedSource() ? [] : [`${EMBEDDED} is old: run \`bun run generate\``]
}

async function client(): Promise<string[]> {
  const written = { ...clientSources(await published()), [COMMAND_LINES]: commandLinesSource() }
  const files = Object.entries(written)
  const old = files.filter(([path, text]) => !existsSync(join(root, path)) || read(path) !== text)
  return old.map(([path]) => `${path} is old: run \`bun run generate\``)
}

async function licences(): Promise<string[]> {
  const wrong = productionTree(root).filter(({ permissive }) => !permissive)
  return wrong.map(({ name, version, licence }) => `${name} ${version} is ${licence}`)
}

async function pins(): Promise<string[]> {
  const { dependencies, devDependencies } = JSON.parse(read("package.json"))
  const all: [string, unknown][] = Object.entries({ ...dependencies, ...devDependencies })
  const exact = /^(npm:[\w@/.-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$|^file:[\w./-]+$/
  const loose = all.filter(([, version]) => !exact.test(String(version)))
  return loose.map(([name, version]) => `${name} is not pinned exactly: ${version}`)
}

/** Whoever clones fetches from a registry of their own choice. */
async function registries(): Promise<string[]> {
  const { dependencies, devDependencies } = JSON.parse(read("package.json"))
  const specs = JSON.stringify({ ...dependencies, ...devDependencies })
  const settings = ["bunfig.toml", ".npmrc"].filter((path) => existsSync(join(root, path)))
  const inFiles = settings.filter((path) => /^\s*(@[\w-]+:)?registry\b/m.test(read(path)))
  const withUrls = [
    ...(/https?:\/\//.test(read("bun.lock")) ? ["bun.lock"] : []),
    ...(/https?:\/\//.test(specs) ? ["package.json"] : []),
  ]
  return [...inFiles, ...withUrls].map((path) => `${path} names a registry`)
}

/** What is published is good OpenAPI, its examples included; see redocly.yaml. */
async function description(): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), "belfry-openapi-"))
  try {
    const document = join(folder, "openapi.json")
    await Bun.write(document, JSON.stringify(await published(), null, 1))
    // It would ask a registry for its next version, and tell its makers what it did.
    const silence = { REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" }
    Object.assign(process.env, silence)
    return await tool(REDOCLY, "lint", document, "--config", "redocly.yaml")
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const REDOCLY = "node_modules/@redocly/cli/bin/cli.js"

const steps: [string, Step][] = [
  ["types", () => types(".")],
  ["types of the console", () => types("src/console")],
  ["types of the component", () => types("src/component")],
  ["types of the worker for pages", () => types("src/component/worker")],
  ["lint and format", () => tool("node_modules/@biomejs/biome/bin/biome", "check", ".")],
  ["schema drift, sqlite", () => drift("sqlite")],
  ["schema drift, postgres", () => drift("postgres")],
  ["migration stamps rise", stamps],
  ["embedded migrations", embedded],
  ["description of the API", description],
  ["client of the API", client],
  ["licences", licences],
  ["exact pins", pins],
  ["no registry named", registries],
  ["plain English", async () => findings()],
]

let failed = 0
for (const [name, step] of steps) {
  const wrong = await step().catch((error) => [String(error)])
  console.log(`${wrong.length === 0 ? "ok  " : "FAIL"} ${name}`)
  for (const text of wrong) console.log(`     ${text.replaceAll("\n", "\n     ")}`)
  if (wrong.length > 0) failed++
}
console.log(failed === 0 ? "all checks passed" : `${failed} of ${steps.length} checks failed`)
process.exit(failed === 0 ? 0 : 1)
