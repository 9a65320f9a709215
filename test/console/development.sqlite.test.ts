import { expect, test } from "bun:test"
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { startBelfry } from "../harness/binary"
import { startBrowser } from "../harness/browser"
import { root } from "../harness/migrations"
import { missing } from "../harness/peers"
import { until } from "../scenarios/mails"
import { lean } from "../scenarios/serve"

const COPIED = ["src", "cli"]
const READ = ["docs", "migrations", "node_modules", "package.json", "tsconfig.json"]

/** The sources in a folder of their own, where a test may change them. */
function copiedSources() {
  const folder = mkdtempSync(join(tmpdir(), "belfry-sources-"))
  for (const name of COPIED) cpSync(join(root, name), join(folder, name), { recursive: true })
  for (const name of READ) symlinkSync(join(root, name), join(folder, name))
  return {
    program: join(folder, "cli/main.ts"),
    /** Saves a file of the console, as an editor does. */
    change(path: string, edit: (text: string) => string) {
      const file = join(folder, "src/console", path)
      const text = readFileSync(file, "utf8")
      const edited = edit(text)
      if (edited === text) throw new Error(`nothing of ${path} was changed`)
      writeFileSync(file, edited)
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  }
}

test.skipIf(missing("chromium-headless-shell"))(
  "an open page from the sources loads itself again after each change, and stays as it is while one does not compile",
  async () => {
    using sources = copiedSources()
    const { program } = sources
    await using server = await startBelfry({ program, wrap: [process.execPath], env: lean })
    const { open_url } = JSON.parse(server.stdout.all[0] ?? "{}") as { open_url: string }
    await using browser = await startBrowser()
    const expected = [/version\.txt/] // the answer while the sources do not compile
    await browser.visit(open_url, { expected }, async (page) => {
      const looks = () => page.requests.filter((url) => url.endsWith("/version.txt")).length
      const looksAgain = (what: string) => {
        const before = looks()
        return until(what, () => looks() > before + 1) // the last but one is answered
      }
      await page.shows("Where to go")
      await looksAgain("the page knows its version")

      sources.change("pages/start.tsx", (text) => text.replace("Where to go", "Where to walk"))
      await page.shows("Where to walk")
      await page.shows("0 of 5") // still signed in
      await looksAgain("the page knows its new version")

      sources.change("pages/start.tsx", (text) => text.replace("<h2>Where to walk", "<h3>Nowhere"))
      await until("the server told of the mistake", () => page.problems.length > 0)
      await looksAgain("the page goes on looking")
      expect(await page.read<string>("document.body.innerText")).toContain("Where to walk")

      sources.change("pages/start.tsx", (text) => text.replace("<h3>Nowhere", "<h2>Where to run"))
      sources.change("style.css", (text) => `${text}\nh2 { letter-spacing: 3px; }\n`)
      await page.shows("Where to run")
      await page.until("getComputedStyle(document.querySelector('h2')).letterSpacing === '3px'")
    })
  },
)
