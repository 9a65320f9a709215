// Imports as good as nothing: `belfry --version` costs what the runtime costs to start.
import { writeSync } from "node:fs"
import { version } from "./lib/environment"

const words = process.argv.slice(2)
if (words[0] === "--version" || words[0] === "-V") {
  try {
    writeSync(1, `${version}\n`)
  } catch (error) {
    if (!(error instanceof Error && "code" in error) || error.code === "EPIPE") process.exit(0)
    process.stderr.write(`The output cannot be written: ${error.code}.\n`)
    process.exit(74)
  }
} else if (words[0] === "__complete") {
  const { complete } = await import("./lib/completion/complete")
  const { createProgram } = await import("./program")
  await complete(createProgram, words.slice(1))
  process.exit(0)
} else {
  const { run } = await import("./command-line")
  await run(words)
}
