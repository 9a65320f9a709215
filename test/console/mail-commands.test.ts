import { describe, expect, test } from "bun:test"
import { chmodSync, mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { requestOf } from "../../src/client/client"
import { curlOf } from "../../src/console/curl"
import {
  bodyOf,
  firstMail,
  mailCommands,
  type OpenMail,
  sendCommand,
  withoutText,
} from "../../src/console/mail/mail-commands"
import { environment } from "../cli/belfry"
import { everything } from "../cli/every-command"
import { ID, KEY } from "../cli/fake-api"
import { leftover } from "../harness/leftovers"
import { program } from "../harness/program"

const MAIL = { id: ID, email_id: ID, attachments: [{ id: "0" }] } as unknown as OpenMail
const DRAFT = { ...firstMail("me@mailbox.test", "http://127.0.0.1:8080"), text: "It's $5 `now`" }

/** A folder that has the program `belfry`, from the sources. */
function programs(): string {
  const folder = leftover(mkdtempSync(join(tmpdir(), "belfry-program-")))
  const script = `#!/bin/sh\nexec ${program.map((word) => `'${word}'`).join(" ")} "$@"\n`
  writeFileSync(join(folder, "belfry"), script)
  chmodSync(join(folder, "belfry"), 0o755)
  return folder
}

/** The requests that a line of the page makes, when somebody pastes it into a shell. */
async function pasted(api: ReturnType<typeof everything>, line: string) {
  const before = api.seen.length
  const more = { BELFRY_API_KEY: KEY, BELFRY_URL: api.url, NO_PROXY: "*" }
  const env = environment(more)
  const folder = programs()
  const cwd = leftover(mkdtempSync(join(tmpdir(), "belfry-paste-")))
  const child = Bun.spawn(["sh", "-ec", line], {
    ...{ env: { ...env, PATH: `${folder}:${env.PATH}` }, cwd, stdin: "ignore" },
    ...{ stdout: "ignore", stderr: "pipe" },
  })
  const said = await new Response(child.stderr).text()
  expect([line, await child.exited, said]).toEqual([line, 0, expect.any(String)])
  return api.seen.slice(before).map(({ method, path, body }) => ({ method, path, body }))
}

const commands = [
  ...mailCommands(MAIL),
  {
    title: "Send a mail",
    belfry: sendCommand(DRAFT),
    request: requestOf("POST /v1/emails", { body: bodyOf(DRAFT) }),
  },
]

describe("what the page says of a terminal", () => {
  test.each(commands)("$title: `belfry` and curl ask for the same", async ({ belfry, request }) => {
    using api = everything()
    const { method, path } = request
    const wanted = expect.objectContaining({ method, path })
    expect(await pasted(api, belfry)).toContainEqual(wanted)
    const [own, ...others] = await pasted(api, curlOf(request, api.url))
    expect([own, others]).toEqual([{ method, path, body: request.body }, []])
  })
})

test("a file is saved under its own name, which leads to no other folder", () => {
  const saved = (filename: string | null) => {
    const attachments = [{ ...MAIL.attachments[0], filename }] as OpenMail["attachments"]
    const commands = mailCommands({ ...MAIL, attachments })
    return commands.find(({ title }) => title === "Download a file")?.belfry.split("--save-as ")[1]
  }
  expect(saved("rows.csv")).toBe("rows.csv")
  expect(saved("It's mine.pdf")).toBe("'It'\\''s mine.pdf'")
  expect(saved("../../.ssh/config")).toBe("config")
  expect(saved("C:\\a\\b.txt")).toBe("b.txt")
  for (const name of ["", "..", ".bashrc", "-rf", "a/", null]) expect(saved(name)).toBe("0.bin")
})

test("a mail without a message and without files has no command for them", () => {
  const bare = { ...MAIL, email_id: null, attachments: [] }
  const titles = mailCommands(bare).map(({ title }) => title)
  expect(titles).not.toContain("Send it again")
  expect(titles).not.toContain("Download a file")
  expect(mailCommands(MAIL)).toHaveLength(titles.length + 2)
})

test("a text in the mailbox is not sent again as an email", () => {
  const text = { ...MAIL, to: "14155550100@sms.mailbox.test" } as OpenMail
  const titles = (mail: OpenMail) => mailCommands(withoutText(mail)).map(({ title }) => title)
  expect(titles({ ...text, to: "ann@mailbox.test" })).toContain("Send it again")
  expect(titles(text)).not.toContain("Send it again")
})
