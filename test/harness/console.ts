/** `bun run build` begins with it: what the binary serves to browsers is made here, into `dist/console`. */
import { mkdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { type AppParts, routeTable } from "../../src/app"
import { VERSION } from "../../src/core/version"
import { compressedText } from "../../src/pages/compressed-text"
import { bundleConsole } from "../../src/pages/console-bundle"
import { DOCUMENTS, type DocumentName } from "../../src/pages/docs/documents"
import { root } from "./migrations"

const FOLDER = join(root, "dist/console")

/** Writes the compressed files and the module `belfry-console`, which imports them. */
export async function writeConsole(version = VERSION): Promise<void> {
  const { files, entries, pages } = await bundleConsole({ is_release: true })
  rmSync(FOLDER, { recursive: true, force: true })
  mkdirSync(FOLDER, { recursive: true })
  for (const { name, brotli, gzip } of files) {
    await Bun.write(join(FOLDER, `${name}.br`), brotli)
    await Bun.write(join(FOLDER, `${name}.gz`), gzip)
  }
  const documents = await documentsOf(version)
  for (const { name, brotli, gzip } of documents) {
    await Bun.write(join(FOLDER, `${name}.json.br`), brotli)
    await Bun.write(join(FOLDER, `${name}.json.gz`), gzip)
  }
  const imports = files.flatMap(({ name }, at) => [
    `import brotli${at} from "./${name}.br" with { type: "file" }`,
    `import gzip${at} from "./${name}.gz" with { type: "file" }`,
  ])
  const rows = files.map(({ name }, at) => `  "${name}": { brotli: brotli${at}, gzip: gzip${at} },`)
  const told = documents.flatMap(({ name }) => [
    `import ${name}Brotli from "./${name}.json.br" with { type: "file" }`,
    `import ${name}Gzip from "./${name}.json.gz" with { type: "file" }`,
  ])
  const named = documents.map(({ name, etag }) => {
    const quoted = JSON.stringify(etag)
    return `  ${name}: { brotli: ${name}Brotli, gzip: ${name}Gzip, etag: ${quoted} },`
  })
  const text = [
    ...imports,
    ...told,
    "export const files = {",
    ...rows,
    "}",
    "export const documents = {",
    ...named,
    "}",
    `export const entries = ${JSON.stringify(entries)}`,
    `export const pages = ${JSON.stringify(pages)}`,
    "",
  ]
  await Bun.write(join(FOLDER, "assets.js"), text.join("\n"))
}

const PATHS: Record<DocumentName, string> = {
  openapi: "/v1/openapi.json",
  search: "/docs/search-index",
}

/** The documents as a server from these sources answers with them, compressed as well as possible. */
async function documentsOf(version: string) {
  const table = routeTable({} as AppParts)
  const request = new Request("http://belfry.test/")
  return Promise.all(
    DOCUMENTS.map(async (name) => {
      const row = table.find(({ path }) => path === PATHS[name])
      const answer = (await row?.handle({ request } as never)) as Response
      const text = (await answer.text()).replace(`"version":"${VERSION}"`, `"version":"${version}"`)
      return { name, ...(await compressedText(text, 11)) }
    }),
  )
}

if (import.meta.main) await writeConsole()
