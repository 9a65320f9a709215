/**
 * `bun run generate [name]` writes the next migration of both engines from every `tables.ts` under
 * `src/`, where the tables differ from the snapshots, and the list that carries them in the binary.
 * It also writes the types and the table of the client from the description of the API, and the
 * commands that the reference shows. Where a migration is new, it keeps a database of the schema before it
 * in `test/fixtures/upgrade`: the sources of the last commit make it (`upgrade-fixture.ts`).
 *
 * Until the first release: `bun run generate --initial` writes the one initial migration anew after a
 * change of tables. On a conflict in `migrations/` take either side, then run it again.
 */
import { cpSync, existsSync, mkdtempSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { clientSources } from "./client-source"
import { COMMAND_LINES, commandLinesSource } from "./command-lines"
import {
  drizzleKit,
  EMBEDDED,
  ENGINES,
  type Engine,
  embeddedSource,
  journal,
  keepNewestSnapshot,
  root,
  TABLE_FILES,
  tableFilesSource,
} from "./migrations"
import { published } from "./published"
import { FIXTURES } from "./upgrade"

const [given = "change"] = process.argv.slice(2)
const is_initial = given === "--initial"
const name = is_initial ? "initial_schema" : given

const lastTag = (engine: Engine) => journal(engine).at(-1)?.tag
const before = lastTag("sqlite")

for (const engine of ENGINES) {
  const folder = join(root, "migrations", engine)
  if (is_initial) rmSync(folder, { recursive: true, force: true })
  const output = await drizzleKit(engine, folder, name)
  keepNewestSnapshot(engine)
  console.log(`${engine}: ${output.split("\n").at(-1)}`)
}
if (!is_initial && before !== undefined && before !== lastTag("sqlite"))
  await keepDatabaseOf(before)
await Bun.write(join(root, TABLE_FILES), tableFilesSource())
await Bun.write(join(root, EMBEDDED), embeddedSource())
console.log(`${EMBEDDED} written`)
const written = { ...clientSources(await published()), [COMMAND_LINES]: commandLinesSource() }
for (const [path, text] of Object.entries(written)) {
  await Bun.write(join(root, path), text)
  console.log(`${path} written`)
}

/** The tables of now are newer than the schema that becomes old, so the sources of the last commit fill it. */
async function keepDatabaseOf(tag: string) {
  const kept = ENGINES.map((engine) => `${tag}.${engine}.sql`)
  if (kept.every((file) => existsSync(join(FIXTURES, file)))) return
  const folder = mkdtempSync(join(tmpdir(), "belfry-generate-"))
  const git = (...words: string[]) => Bun.spawnSync(["git", ...words], { cwd: root })
  try {
    git("worktree", "add", "--detach", folder, "HEAD")
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
    const made = Bun.spawnSync(["bun", "test/harness/upgrade-fixture.ts"], { cwd: folder })
    console.log(made.stdout.toString().trim(), made.stderr.toString().trim())
    for (const file of kept)
      cpSync(join(folder, "test/fixtures/upgrade", file), join(FIXTURES, file))
  } finally {
    git("worktree", "remove", "--force", folder)
    rmSync(folder, { recursive: true, force: true })
  }
}
