import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { newSecret, type SignatureFormat, signedHeaders } from "../../src/lib/signature"
import { missing } from "../harness/peers"
import { codeBlocks } from "./code-blocks"

const folder = mkdtempSync(join(tmpdir(), "belfry-signatures-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const blocks = codeBlocks("docs/webhooks.md").filter(
  ({ heading }) => heading === "Check the signature yourself",
)

/** How a reader would run what they pasted into a file. */
const programs = {
  ts: { file: "verify.ts", needs: [], run: [process.execPath, "verify.ts"] },
  python: { file: "verify.py", needs: ["python3"], run: ["python3", "verify.py"] },
  go: { file: "verify.go", needs: ["go"], run: ["./verify-go"] },
  php: { file: "verify.php", needs: ["php"], run: ["php", "verify.php"] },
  sh: { file: "verify.sh", needs: ["openssl"], run: ["sh", "verify.sh"] },
} as const

type Language = keyof typeof programs
const languages = Object.keys(programs) as Language[]

beforeAll(async () => {
  for (const { language, code } of blocks) {
    const program = programs[language as Language]
    if (program) writeFileSync(join(folder, program.file), code)
  }
  if (missing("go")) return
  const env = { ...process.env, GOCACHE: join(folder, "go-cache"), GOFLAGS: "-mod=mod" }
  const build = Bun.spawn(["go", "build", "-o", "verify-go", "verify.go"], {
    cwd: folder,
    env,
    stderr: "pipe",
  })
  if ((await build.exited) !== 0) throw new Error(await build.stderr.text())
})

const secret = newSecret()
const old = newSecret()
const body = '{"id":"evt_1","data":{"subject":"Grüße 🔔","note":"$HOME `x` \\\\n"}}\n'

interface Input {
  format?: SignatureFormat
  secrets?: [string, ...string[]]
  timestamp?: number
  sent?: string
  change?: (headers: Record<string, string>) => void
}

/** Runs the program with a delivery, as a web server runs a CGI script. */
async function accepts(language: Language, given: Input): Promise<boolean> {
  const { format = "standard", secrets = [secret], sent = body } = given
  const timestamp = given.timestamp ?? Math.floor(Date.now() / 1000)
  const headers = signedHeaders({ id: "evt_1", timestamp, body, secrets, format })
  given.change?.(headers)
  const asCgi = Object.entries(headers).map(([name, value]) => [
    `HTTP_${name.toUpperCase().replaceAll("-", "_")}`,
    value,
  ])
  const child = Bun.spawn([...programs[language].run], {
    cwd: folder,
    env: { PATH: process.env.PATH, WEBHOOK_SECRET: secret, ...Object.fromEntries(asCgi) },
    stdin: Buffer.from(sent),
    stdout: "pipe",
    stderr: "pipe",
  })
  const code = await child.exited
  const said = (await child.stdout.text()) + (await child.stderr.text())
  if (code !== 0 && code !== 1) throw new Error(`exit ${code}: ${said}`)
  return code === 0
}

test("the page has a program for each of the five languages, and no other", () => {
  expect(blocks.map(({ language }) => language)).toEqual(languages)
})

describe.each(languages)("the program in %s", (language) => {
  const able = !missing(...programs[language].needs)

  test.skipIf(!able).each<[string, Input]>([
    ["the standard headers", {}],
    ["the legacy headers", { format: "legacy" }],
    ["both", { format: "both" }],
    ["two signatures after a rotation", { secrets: [newSecret(), secret] }],
    ["a clock that is four minutes off", { timestamp: Math.floor(Date.now() / 1000) + 240 }],
  ])("accepts %s", async (_, given) => {
    expect(await accepts(language, given)).toBe(true)
  })

  test.skipIf(!able).each<[string, Input]>([
    ["another body", { sent: body.replace("Grüße", "Gruesse") }],
    ["another body with the legacy headers", { format: "legacy", sent: `${body} ` }],
    ["another secret", { secrets: [old] }],
    ["another secret with the legacy headers", { format: "legacy", secrets: [old] }],
    ["an old delivery", { timestamp: Math.floor(Date.now() / 1000) - 400 }],
    ["an old delivery with the legacy headers", { format: "legacy", timestamp: 1_700_000_000 }],
    ["another id", { change: (headers) => (headers["webhook-id"] = "evt_2") }],
    [
      "a timestamp that is none",
      { change: (headers) => (headers["webhook-timestamp"] = "x[$(exit 0)]") },
    ],
    ["no signature", { change: (headers) => delete headers["webhook-signature"] }],
    [
      "a right legacy signature beside a wrong standard one",
      { format: "both", change: (headers) => (headers["webhook-signature"] = "v1,AAAA") },
    ],
  ])("refuses %s", async (_, given) => {
    expect(await accepts(language, given)).toBe(false)
  })
})
