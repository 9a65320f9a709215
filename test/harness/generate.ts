/**
 * `bun run generate [name]` writes the next migration of both engines from every `tables.ts` under
 * `src/`, where the tables differ from the snapshots, and the list that carries them in the binary.
 * It also writes the types and the table of the client from the description of the API.
 */
import { join } from "node:path"
import { clientSources } from "./client-source"
import { drizzleKit, EMBEDDED, ENGINES, embeddedSource, journal, root } from "./migrations"
import { published } from "./published"

const first = ENGINES.every((engine) => journal(engine).length === 0)
const [name = first ? "start" : "change"] = process.argv.slice(2)

for (const engine of ENGINES) {
  const output = await drizzleKit(engine, join(root, "migrations", engine), name)
  console.log(`${engine}: ${output.split("\n").at(-1)}`)
}
await Bun.write(join(root, EMBEDDED), embeddedSource())
console.log(`${EMBEDDED} written`)
for (const [path, text] of Object.entries(clientSources(await published()))) {
  await Bun.write(join(root, path), text)
  console.log(`${path} written`)
}
