// Imports as good as nothing: `belfry --version` costs what the runtime costs to start.
import { version } from "./version"

const words = process.argv.slice(2)
if (words[0] === "--version" || words[0] === "-V") {
  process.stdout.write(`${version}\n`)
} else {
  const { run } = await import("./program")
  await run(words)
}
