/**
 * Run on a terminal by drawing.test.ts: shows the rows of a file page by page, as the monitor draws them.
 * Arguments: a folder, columns and lines. A page is drawn when the file `wanted` names it; then `drawn` does.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { openScreen } from "../../cli/tui/monitor"
import { pageLines } from "./subjects"

const [folder = "", columns = "", lines = ""] = process.argv.slice(2)
const wanted = join(folder, "wanted")
const PRINT = "\u001b[i" // xterm gives the screen to its printer command; others ignore it
const PRINT_AGAIN_MS = 500 // what was printed may be older than what the terminal has drawn since

const screen = openScreen((text) => void process.stdout.write(text))
let last = -1
let printed_at = 0
for (;;) {
  const page = existsSync(wanted) ? readFileSync(wanted, "utf8") : ""
  if (page === "end") break
  if (page !== "" && Number(page) !== last) {
    last = Number(page)
    screen.draw(pageLines(last, Number(columns), Number(lines)))
    process.stdout.write(PRINT)
    printed_at = performance.now()
    writeFileSync(join(folder, "drawn"), page)
  } else if (last >= 0 && performance.now() - printed_at > PRINT_AGAIN_MS) {
    process.stdout.write(PRINT)
    printed_at = performance.now()
  }
  await Bun.sleep(5)
}
screen.close()
