import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { root } from "./migrations"

/** The numbers of the lines, from 1, that end with `// wrong`. */
export const markedLines = (program: string): number[] =>
  program.split("\n").flatMap((line, at) => (line.endsWith("// wrong") ? at + 1 : []))

/**
 * Checks a program with the compiler and the settings of the project; `belfry/…` is a file of `src`.
 * Resolves to the numbers of its wrong lines.
 */
export async function linesThatFail(program: string): Promise<number[]> {
  const folder = mkdtempSync(join(tmpdir(), "belfry-program-"))
  try {
    const file = join(folder, "program.ts")
    await Bun.write(file, program)
    const compilerOptions = {
      typeRoots: [join(root, "node_modules/@types")],
      paths: {
        "belfry/*": [join(root, "src/*")],
        "@sinclair/typebox": [join(root, "node_modules/@sinclair/typebox")],
      },
    }
    const settings = { extends: join(root, "tsconfig.json"), include: [], files: [file] }
    const tsconfig = join(folder, "tsconfig.json")
    await Bun.write(tsconfig, JSON.stringify({ ...settings, compilerOptions }))
    const compiler = join(root, "node_modules/typescript/bin/tsc")
    const cmd = [process.execPath, compiler, "-p", tsconfig, "--pretty", "false"]
    const run = Bun.spawn({ cmd, cwd: root, stdin: "ignore", stdout: "pipe" })
    const found = [...(await run.stdout.text()).matchAll(/^(\S*?)\((\d+),\d+\): error/gm)]
    const elsewhere = found.filter(([, path = ""]) => !path.endsWith("program.ts"))
    if (elsewhere.length > 0) throw new Error(elsewhere.map(([text]) => text).join("\n"))
    return [...new Set(found.map(([, , line]) => Number(line)))]
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
