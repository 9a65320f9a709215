/**
 * `bun run generate [name]` writes the next migration of both engines from every `tables.ts` under
 * `src/`, where the tables differ from the snapshots, and the list that carries them in the binary.
 * It also writes the types and the table of the client from the description of the API, and the
 * commands that the reference shows.
 *
 * Until the first release: `bun run generate --initial` writes the one initial migration anew after a
 * change of tables. On a conflict in `migrations/` take either side, then run it again.
 */
import { rmSync } from "node:fs"
import { join } from "node:path"
import { clientSources } from "./client-source"
import { COMMAND_LINES, commandLinesSource } from "./command-lines"
import {
  drizzleKit,
  EMBEDDED,
  ENGINES,
  embeddedSource,
  keepNewestSnapshot,
  root,
} from "./migrations"
import { published } from "./published"

const [given = "change"] = process.argv.slice(2)
const is_initial = given === "--initial"
const name = is_initial ? "initial_schema" : given

for (const engine of ENGINES) {
  const folder = join(root, "migrations", engine)
  if (is_initial) rmSync(folder, { recursive: true, force: true })
  const output = await drizzleKit(engine, folder, name)
  keepNewestSnapshot(engine)
  console.log(`${engine}: ${output.split("\n").at(-1)}`)
}
await Bun.write(join(root, EMBEDDED), embeddedSource())
console.log(`${EMBEDDED} written`)
const written = { ...clientSources(await published()), [COMMAND_LINES]: commandLinesSource() }
for (const [path, text] of Object.entries(written)) {
  await Bun.write(join(root, path), text)
  console.log(`${path} written`)
}
