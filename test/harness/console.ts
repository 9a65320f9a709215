/** `bun run build` begins with it: bundles the console into `dist/console`, for the binary to carry. */
import { mkdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { bundleConsole } from "../../src/pages/console-bundle"
import { root } from "./migrations"

const FOLDER = join(root, "dist/console")

/** Writes the compressed files and the module `belfry-console`, which imports them. */
export async function writeConsole(): Promise<void> {
  const { files, entries, pages } = await bundleConsole({ is_release: true })
  rmSync(FOLDER, { recursive: true, force: true })
  mkdirSync(FOLDER, { recursive: true })
  for (const { name, brotli, gzip } of files) {
    await Bun.write(join(FOLDER, `${name}.br`), brotli)
    await Bun.write(join(FOLDER, `${name}.gz`), gzip)
  }
  const imports = files.flatMap(({ name }, at) => [
    `import brotli${at} from "./${name}.br" with { type: "file" }`,
    `import gzip${at} from "./${name}.gz" with { type: "file" }`,
  ])
  const rows = files.map(({ name }, at) => `  "${name}": { brotli: brotli${at}, gzip: gzip${at} },`)
  const text = [
    ...imports,
    "export const files = {",
    ...rows,
    "}",
    `export const entries = ${JSON.stringify(entries)}`,
    `export const pages = ${JSON.stringify(pages)}`,
    "",
  ]
  await Bun.write(join(FOLDER, "assets.js"), text.join("\n"))
}

if (import.meta.main) await writeConsole()
